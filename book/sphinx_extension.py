"""Sphinx extension: what neither the theme nor autodoc has a setting for."""

from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config


def _link_to_the_repository(_app: Sphinx, config: Config) -> None:
    """Show the buttons that lead to the repository, or open a notebook of it elsewhere, where there is an address."""
    options = config.html_theme_options
    options["use_repository_button"] = bool(options["repository_url"])
    if not options["repository_url"]:
        options["launch_buttons"] = {}


def _without_thebe(*event: Any) -> None:
    """Leave out the scripts of thebe, which would be fetched from the network and are not used here."""
    _app, _page, _template, context, _doctree = event
    scripts = context["script_files"]
    context["script_files"] = [s for s in scripts if "thebe" not in f"{s.filename}{s.attributes.get('body')}"]


def _without_aliases(*event: Any) -> bool | None:
    """Leave out the fields of named tuples: the class's docstring has described them."""
    _app, _what, _name, member, _skip, _options = event
    return True if str(member.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the events of a build."""
    app.connect("config-inited", _link_to_the_repository)
    app.connect("html-page-context", _without_thebe)
    app.connect("autodoc-skip-member", _without_aliases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
