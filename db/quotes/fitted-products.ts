/** A product that fitted a quote, as an application may later be opened for it. Money in pence. */
export interface FittedProduct {
  readonly productId: string;
  readonly version: number;
  /** Key of its lender: only that lender's integrations open applications for it. */
  readonly lender: string;
  readonly creditProduct: string;
  readonly depositPence: number;
  readonly loanPence: number;
  readonly monthlyRepaymentPence: number;
  readonly totalPayablePence: number;
}

/** The order of the values in a stored entry. Append only: old quotes are read with it too. */
const FIELDS = [
  'productId',
  'version',
  'lender',
  'creditProduct',
  'depositPence',
  'loanPence',
  'monthlyRepaymentPence',
  'totalPayablePence',
] as const satisfies readonly (keyof FittedProduct)[];

/**
 * Values without names, an array each: there are as many of them as products, in every quote ever made. Written out in
 * the order of FIELDS, because a loop over names costs as much as pricing a product does.
 */
export function encodeFitted(fitted: readonly FittedProduct[]): string {
  return JSON.stringify(
    fitted.map((one) => [
      one.productId,
      one.version,
      one.lender,
      one.creditProduct,
      one.depositPence,
      one.loanPence,
      one.monthlyRepaymentPence,
      one.totalPayablePence,
    ]),
  );
}

export function decodeFitted(stored: unknown): FittedProduct[] {
  const entries = stored as readonly (readonly (string | number)[])[];
  return entries.map(
    (values) =>
      Object.fromEntries(FIELDS.map((field, at) => [field, values[at]])) as unknown as FittedProduct,
  );
}
