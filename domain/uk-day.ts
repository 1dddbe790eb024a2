const london = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Europe/London',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
});

let minute = Number.NaN;
let day = '';

/** The UK calendar day (YYYY-MM-DD) of a moment: products are valid by UK days. Formatted once a minute. */
export function ukDay(moment: Date): string {
  const current = Math.floor(moment.getTime() / 60_000);
  if (current !== minute) {
    day = london.format(moment);
    minute = current;
  }
  return day;
}
