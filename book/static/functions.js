/** The test functions of `leamvd_paper.data.functions`, in two variables: all have their minimum, zero, at zero. */
export const FUNCTIONS = {
  sphere: ([x, y]) => x ** 2 + y ** 2,
  ellipsoid: ([x, y]) => x ** 2 + 100 * y ** 2,
  rosenbrock: ([x, y]) => 100 * (y + 1 - (x + 1) ** 2) ** 2 + x ** 2,
  rastrigin: (point) => point.reduce((total, x) => total + x ** 2 + 10 * (1 - Math.cos(2 * Math.PI * x)), 0),
};
