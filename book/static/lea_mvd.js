/**
 * LEA-MVD in two variables, Algorithm 1 of the paper: what the book's playground runs.
 *
 * `first` and `next` return what is known after a generation, as a plain object. Fields and settings have the names and
 * values that they have in `leamvd.State`, `leamvd.LEAMVD` and `leamvd.Reading`; a point and a vector are arrays of two
 * numbers. Equations are the paper's, R1-R19 the items of the method's page. Random numbers come from the caller:
 * `draw.normal()` is standard normal, `draw.uniform()` uniform in [0, 1). tests/test_playground.py gives this code and
 * the library the same ones, and compares every state.
 */

const RATE = 0.1; // weight of the new direction; 1 - RATE of the old one (Sec. 3.3)
const N_DESCENT_ROWS = 4; // abs(ir), R7
const PERTURBED = 0.02; // probability that a variable is multiplied by U(0.5, 1.5), R17
const STAGNATION = 10; // generations without a better best that end in a reset (line 9)

export const DEFAULTS = {
  sigma0: 0.1,
  population_size: 24, // lambda, R2
  n_elite: 4,
  shift: "toward_best", // or "printed", R5
  reset: 1, // any positive number, "initial" or "off", R13
  perturbation: "entry", // or "added" or "off", R17
  exponent: 1.5, // R19
  path: "on", // or "off", C11
  descent: "orthogonal", // or "off", C11
};

const times = (count, make) => Array.from({ length: count }, (_, k) => make(k));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1]];
const combine = (s, a, t, b) => [s * a[0] + t * b[0], s * a[1] + t * b[1]]; // s a + t b

/** Generation 1: x0 itself (R16), and N(x0, sigma0^2 I) (line 2, initialization B). */
export function first(f, x0, settings, draw) {
  const around = () => x0.map((x) => x + settings.sigma0 * draw.normal());
  return learn(f, settings, draw, null, [x0, ...times(settings.population_size - 1, around)]);
}

/** The generation after `state`: the elites, and samples around the shifted mean (line 12). */
export function next(f, settings, draw, state) {
  const { mean, std, beta1, v } = state;
  const last = (x) => {
    const u = draw.uniform() < PERTURBED ? draw.uniform() - 0.5 : 0;
    return { entry: x * (1 + u), added: x + settings.sigma0 * u, off: x }[settings.perturbation]; // Eq. 6, R17
  };
  const sample = () => mean.map((mu, i) => last(mu + std[i] * draw.normal() + beta1 * v[i])); // Eq. 5
  return learn(f, settings, draw, state, times(settings.population_size - settings.n_elite, sample));
}

/** Lines 14-30 for new individuals, then 7-11; `before` is the state of the generation before, or null. */
function learn(f, settings, draw, before, candidates) {
  const kept = before ? before.population.slice(0, settings.n_elite) : [];
  const points = [
    ...kept.map((x, k) => ({ x, value: before.fitness[k] })), // R14
    ...candidates.map((x) => ({ x, value: f(x) })),
  ].sort((a, b) => a.value - b.value); // stable, R18
  const population = points.map((point) => point.x);
  const fitness = points.map((point) => point.value);
  const steps = before ? stepSizes(before, fitness[0] !== before.fitness[0]) : { beta1: 1, beta2: 0.9, stagnation: 0 };
  const model = normalModel(population, weights(settings));
  const initial_std = before ? before.initial_std : model.std;
  const directions = mainDirections(settings, draw, before, population, steps.beta2);
  const generation = before ? before.generation + 1 : 1;
  const state = { generation, population, fitness, ...model, ...directions, ...steps, initial_std };
  return steps.stagnation === STAGNATION && settings.reset !== "off" ? reset(state, settings) : state;
}

/** Lines 17-30; R12 is about beta_1 = 1. */
function stepSizes({ beta1, beta2, stagnation }, success) {
  return success
    ? { beta1: beta1 > 1 ? Math.min(3, 1.1 * beta1) : 1.4 * beta1, beta2: Math.min(1, 0.2 + beta2), stagnation: 0 }
    : { beta1: beta1 < 1 ? 0.8 * beta1 : 0.5 * beta1, beta2: Math.max(0, beta2 - 0.1), stagnation: stagnation + 1 };
}

/** Lines 9-11. */
function reset(state, settings) {
  const std = settings.reset === "initial" ? state.initial_std : [settings.reset, settings.reset];
  return { ...state, std, beta1: 0.1, stagnation: 0 };
}

/** G, best first (Eq. 1). */
function weights({ population_size: size, exponent }) {
  const shares = times(size, (k) => ((size - k) / size) ** exponent);
  return shares.map((share) => share / sum(shares));
}

/** mu and Sigma (Eqs. 2 and 3). */
function normalModel(population, G) {
  const weighted = (values) => sum(values.map((value, k) => G[k] * value));
  const mean = [0, 1].map((i) => weighted(population.map((x) => x[i])));
  const std = [0, 1].map((i) => Math.sqrt(weighted(population.map((x) => (x[i] - mean[i]) ** 2))));
  return { mean, std };
}

/** P, C_ani, the projections on it, and the shift v (Sec. 3.3, Eq. 4). */
function mainDirections(settings, draw, before, population, beta2) {
  const [best, ...rest] = population;
  const previous = before ?? { population, path: [0, 0], descent: [0, 0] }; // R8
  const path = combine(RATE, minus(best, previous.population[0]), 1 - RATE, previous.path);
  if (settings.path === "off") path.fill(0);
  const descent_rows = ranks(draw, population.length);
  const U = descent_rows.map((rank) => minus(best, population[rank]));
  const descent = combine(RATE, orthogonalDescent(U, path), 1 - RATE, previous.descent);
  const projections = rest.map((x) => dot(minus(x, best), descent)); // R11
  const descent_mean = sum(projections) / rest.length;
  const descent_std = Math.sqrt(sum(projections.map((p) => (p - descent_mean) ** 2)) / rest.length);
  const toward = settings.shift === "printed" ? descent_mean : Math.abs(descent_mean); // R5
  const step = settings.descent === "off" ? 0 : toward;
  const v = combine(beta2, path, (1 - beta2) * step, descent);
  return { path, descent_rows, descent, descent_mean, descent_std, v };
}

/** ir: distinct ranks out of 1, ..., size - 1, by the first steps of a shuffle. */
function ranks(draw, size) {
  const pool = times(size - 1, (k) => k + 1);
  for (let i = 0; i < N_DESCENT_ROWS; i++) {
    const j = i + Math.floor(draw.uniform() * (pool.length - i));
    [pool[i], pool[j]] = [pool[j], pool[i]];
  }
  return pool.slice(0, N_DESCENT_ROWS);
}

/**
 * C_hat: of the unit vectors orthogonal to P the one on which the columns of U project most, turned toward the best (R6).
 *
 * In the plane the power method's limit is known: P turned by a right angle; or, where P is zero, the first principal
 * axis of U, at half the angle of (sum x^2 - y^2, sum 2 x y).
 */
function orthogonalDescent(U, P) {
  const axis = Math.atan2(sum(U.map(([x, y]) => 2 * x * y)), sum(U.map(([x, y]) => x * x - y * y))) / 2;
  const angle = dot(P, P) > 0 ? Math.atan2(P[0], -P[1]) : axis;
  const c = [Math.cos(angle), Math.sin(angle)];
  const projection = sum(U.map((u) => dot(u, c)));
  return c.map((x) => Math.sign(projection) * x); // zero where nothing projects on it
}
