/**
 * Texts that JavaScript's `JSON.parse` reads as the event that a body is, or nearly, and that another reader may read differently; none is
 * what we would have written.
 * @param body of an event, as we write it
 */
export function variantsOf(body: string): [string, string][] {
  const event = JSON.parse(body) as { data: Record<string, unknown> } & Record<string, unknown>;
  const { data, ...rest } = event;
  const paid = JSON.stringify({ ...data, loan_amount: '9999.00', status: 'paid_out' });
  const behind = (more: string) => body.replace(/\}$/, `,${more}}`);
  const inData = (more: string) => body.replace(/\}\}$/, `,${more}}}`);
  const before = (more: string) => body.replace(/^\{/, `{${more},`);
  return [
    ['a field with another case, which Go reads too', behind('"Event_Type":"credit_application.paid_out"')],
    ['data with another case', behind(`"DATA":${paid}`)],
    ['both before the genuine ones', before(`"Event_Type":"credit_application.paid_out","DATA":${paid}`)],
    ['a field of data with another case', inData('"Loan_Amount":"9999.00"')],
    ['the long s, which Go folds to s', inData('"\u017Ftatus":"paid_out"')],
    ['data twice, the genuine one last', before(`"data":${paid}`)],
    ['data twice, the genuine one first', behind(`"data":${JSON.stringify(data)}`)],
    ['a field of data twice', inData(`"loan_amount":${JSON.stringify(data['loan_amount'])}`)],
    ['a field that we do not write', behind('"amount":"9999.00"')],
    ['one in data', inData('"paid":true')],
    ['one with an empty name', inData('"":0')],
    ['__proto__', behind('"__proto__":{"status":"paid_out"}')],
    ['__proto__ in data', inData('"__proto__":{}')],
    ['a name with an escape', body.replace('"status"', String.raw`"st\u0061tus"`)],
    ['a value with an escape', body.replace(/("lender":".*?)e/, String.raw`$1\u0065`)],
    ['an escaped slash', body.replace(/("lender_reference":")/, String.raw`$1\/`)],
    ['another number', body.replace(/"sequence":(\d+)/, '"sequence":$1.0')],
    ['an exponent', body.replace(/"sequence":(\d+)/, '"sequence":$1e0')],
    ['a number as text', body.replace(/"sequence":(\d+)/, '"sequence":"$1"')],
    ['a sign', body.replace(/"sequence":(\d+)/, '"sequence":-0')],
    ['white space', body.replace('{', '{ ')],
    ['a line break behind it', `${body}\n`],
    ['a byte order mark', `\uFEFF${body}`],
    ['another order', JSON.stringify({ data, ...rest })],
    [
      'another order in data',
      JSON.stringify({ ...rest, data: Object.fromEntries(Object.entries(data).toReversed()) }),
    ],
    ['a field less', JSON.stringify({ ...rest, data: { ...data, credit_product: undefined } })],
    ['an object for a text', JSON.stringify({ ...rest, data: { ...data, lender: { A: 1 } } })],
    ['a list for a text', JSON.stringify({ ...rest, data: { ...data, lender: ['lender_a'] } })],
    ['an amount in another form', body.replace(/"loan_amount":"/, '"loan_amount":"0')],
    ['an amount as a number', body.replace(/"loan_amount":"([\d.]+)"/, '"loan_amount":$1')],
    ['a moment in another form', body.replace(/("created_at":"[^"]*)Z"/, '$1+00:00"')],
    ['half a surrogate pair', body.replace(/("lender_reference":")/, String.raw`$1\ud800`)],
    ['a NUL', body.replace(/("lender_reference":")/, String.raw`$1\u0000`)],
    ['another version', body.replace('"api_version":"v1"', '"api_version":"v2"')],
    ['a version of every object', body.replace('"api_version":"v1"', '"api_version":"constructor"')],
    ['a comment', body.replace('{', '{/**/')],
    ['a comma too many', body.replace(/\}\}$/, ',}}')],
  ];
}
