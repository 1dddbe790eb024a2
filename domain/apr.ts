/** An amount (pounds or pence, one unit throughout) and the years from the first drawdown to it. */
export type CashFlow = readonly [years: number, amount: number];

/** Highest rate looked at: 100,000,000 %. £500 for five days at £510 is 324 %. */
const HIGHEST_LOG_RATE = Math.log(1e6);
/** Step of the upward scan in ln(1 + rate): 5 % where the rates of retail finance lie. */
const SCAN_STEP = 0.05;
/** Payments within this share of the drawdowns are free of interest: 0.002 pence of £2,000,000. */
const NOTHING = 1e-11;

function balanceAt(logRate: number, drawdowns: readonly CashFlow[], payments: readonly CashFlow[]): number {
  let sum = 0;
  for (const [years, amount] of drawdowns) sum += amount * Math.exp(-years * logRate);
  for (const [years, amount] of payments) sum -= amount * Math.exp(-years * logRate);
  return sum;
}

/**
 * Annual percentage rate: the yearly rate at which the present value of all payments equals that of all
 * drawdowns (FCA CONC App 1.2, Directive 2008/48/EC Annex I). It is scanned upward from 0, so that the
 * lowest of several roots is returned, and each step is halved down to the precision of doubles. One loan
 * with payments after it has at most one root. Two roots within one step, which only later drawdowns can
 * cause, are not seen.
 * @returns the rate in percent, unrounded (9.9 for 9.9 %), or null without a root from 0 to 100,000,000
 * %: nothing drawn down, nothing paid, or less paid than was drawn down
 */
export function impliedApr(drawdowns: readonly CashFlow[], payments: readonly CashFlow[]): number | null {
  let drawn = 0;
  for (const [, amount] of drawdowns) drawn += amount;
  if (!(drawn > 0) || payments.length === 0) return null;
  let low = 0;
  const atZero = balanceAt(0, drawdowns, payments);
  if (Math.abs(atZero) <= NOTHING * drawn) return 0;
  let previous = atZero;
  while (low < HIGHEST_LOG_RATE) {
    const high = low + SCAN_STEP;
    const value = balanceAt(high, drawdowns, payments);
    if (value === 0) return Math.expm1(high) * 100;
    if (value > 0 !== previous > 0)
      return Math.expm1(bisect(low, high, previous > 0, drawdowns, payments)) * 100;
    low = high;
    previous = value;
  }
  return null;
}

/** Halves [from, to], at whose ends the balance differs in sign, down to the precision of doubles. */
function bisect(
  from: number,
  to: number,
  positiveAtLow: boolean,
  drawdowns: readonly CashFlow[],
  payments: readonly CashFlow[],
): number {
  let [low, high] = [from, to];
  for (;;) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high || high - low < 1e-15) return middle;
    if (balanceAt(middle, drawdowns, payments) > 0 === positiveAtLow) low = middle;
    else high = middle;
  }
}

/**
 * Rounds a percentage half-up in decimal: 3.055 is 3.06 to two decimals although its double lies just
 * below. Noise from the tenth decimal on is dropped first.
 * @param percent ≥ 0, below 1e21
 * @param decimals 0–6; APRs are stated with one
 */
export function roundPercent(percent: number, decimals = 1): number {
  const scaled = Number(`${percent.toFixed(10)}e${decimals}`);
  return Number(`${Math.floor(scaled + 0.5)}e-${decimals}`);
}
