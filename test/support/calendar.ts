/** Time between two days as the APR counts it: `months / 12 + days / daysInYear` years. */
export interface Interval {
  /** Whole months, counted back from the end date. */
  readonly months: number;
  /** Days left between the start date and the point the months reached, 0–30. */
  readonly days: number;
  /** 366 when the year that ends at that point contains a 29 February, else 365. */
  readonly daysInYear: 365 | 366;
  readonly years: number;
}

interface Day {
  readonly year: number;
  /** 1–12. */
  readonly month: number;
  readonly day: number;
}

const ISO_DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const MS_PER_DAY = 86_400_000;

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function parseDay(text: string): Day {
  const match = ISO_DATE.exec(text);
  const [year, month, day] = [Number(match?.[1]), Number(match?.[2]), Number(match?.[3])];
  if (match === null || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) {
    throw new RangeError(`not a calendar day (YYYY-MM-DD): ${text}`);
  }
  return { year, month, day };
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar. */
function dayNumber({ year, month, day }: Day): number {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime() / MS_PER_DAY;
}

/** The same day of the month, `months` earlier; the last day of a month that is too short for it. */
function monthsBefore(end: Day, months: number): Day {
  const index = end.year * 12 + (end.month - 1) - months;
  const year = Math.floor(index / 12);
  const month = (index % 12) + 1;
  return { year, month, day: Math.min(end.day, daysInMonth(year, month)) };
}

/** Whether the year that ends on `end`, that day included, contains a 29 February. */
function yearEndingContainsLeapDay(end: Day): boolean {
  const beforeLeapDay = end.month === 1 || (end.month === 2 && end.day < 29);
  return isLeap(beforeLeapDay ? end.year - 1 : end.year);
}

/**
 * Interval between drawdown and payment for the APR: FCA CONC App 1.2, Directive 2008/48/EC Annex I, with the
 * worked examples of SWD(2012) 128 section 4.1.1. Whole months are counted back from the end date; the days that
 * remain are divided by 365, or by 366 when the year ending at the point reached contains a 29 February.
 * @param from first day, YYYY-MM-DD.
 * @param to last day, YYYY-MM-DD, not before `from`.
 * @throws RangeError for a day that does not exist, or when `to` is before `from`.
 */
export function intervalBetween(from: string, to: string): Interval {
  const start = parseDay(from);
  const end = parseDay(to);
  const startNumber = dayNumber(start);
  if (dayNumber(end) < startNumber) throw new RangeError(`${to} is before ${from}`);
  let months = (end.year - start.year) * 12 + (end.month - start.month);
  let reached = monthsBefore(end, months);
  if (dayNumber(reached) < startNumber) {
    months -= 1;
    reached = monthsBefore(end, months);
  }
  const days = dayNumber(reached) - startNumber;
  const daysInYear = yearEndingContainsLeapDay(reached) ? 366 : 365;
  return { months, days, daysInYear, years: months / 12 + days / daysInYear };
}
