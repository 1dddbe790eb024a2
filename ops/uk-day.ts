const london = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'Europe/London',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
});

/** The UK calendar day (YYYY-MM-DD) of a moment: products are valid by UK days. */
export function ukDay(moment: Date): string {
  return london.format(moment);
}
