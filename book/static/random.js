/**
 * Draws of a seed, for `first` and `next`: a counter whose bits MurmurHash3's finalizer mixes, and d3's normals of them.
 *
 * They are not the library's: a seed shows one run here and another one there.
 */
export function draws(seed) {
  let counter = mixed(seed);
  const uniform = () => mixed((counter += 0x9e3779b9)) / 2 ** 32;
  return { uniform, normal: d3.randomNormal.source(uniform)() };
}

function mixed(bits) {
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
