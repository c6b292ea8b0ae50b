"""The paper's experiments: data sets, studies, records, comparisons, claims, figures."""
