import { checkProduct } from '../../domain/product-check';
import { TEST_LENDERS, TEST_MERCHANTS } from '../../domain/test-merchants';
import type { Fault } from './faults';
import { PRODUCT_NAMES } from './file-names';
import { checkForm, type ParsedRow } from './parse-rows';
import {
  productRowSchema,
  toProductDefinition,
  toPublishedExample,
  type ProductRow,
  type StatedProduct,
} from './product-schema';

/** A row whose figures were found sound. */
export interface CheckedProduct {
  readonly row: number;
  readonly merchantId: string;
  readonly definition: StatedProduct;
  /** Null: where a new product comes last, and a stored one keeps its place. */
  readonly displayOrder: number | null;
  readonly active: boolean;
}

/** Everything about a products file that needs no database: form, duplicates, and whether the figures bear out the APR. */
export function checkProducts(rows: readonly unknown[]): { checked: CheckedProduct[]; faults: Fault[] } {
  const form = checkForm(rows, productRowSchema, ({ merchant_id: merchant, credit_product: name }) =>
    typeof merchant === 'string' && typeof name === 'string'
      ? { field: 'credit_product', unit: JSON.stringify([merchant, name]) }
      : null,
  );
  const faults = [...form.faults];
  const checked: CheckedProduct[] = [];
  // Merchants of a chain share their products: figures that were checked once need not be checked again.
  const known = new Map<string, ReturnType<typeof checkProduct>>();
  for (const { row, value } of form.parsed) {
    faults.push(...checkRow({ row, value }, known));
    checked.push({
      row,
      merchantId: value.merchant_id,
      definition: toProductDefinition(value),
      displayOrder: value.display_order ?? null,
      active: value.active ?? true,
    });
  }
  return { checked, faults };
}

function checkRow(
  { row, value }: ParsedRow<ProductRow>,
  known: Map<string, ReturnType<typeof checkProduct>>,
): Fault[] {
  const definition = toProductDefinition(value);
  const example = toPublishedExample(value);
  const terms = JSON.stringify([definition, example]);
  const found = known.get(terms) ?? checkProduct(definition, example);
  known.set(terms, found);
  const faults: Fault[] = found.map(({ field, message }) => ({
    row,
    field: PRODUCT_NAMES[field],
    message: inFileNames(message),
  }));
  if (
    definition.validFrom !== null &&
    definition.validTo !== null &&
    definition.validTo < definition.validFrom
  ) {
    faults.push({ row, field: 'valid_to', message: 'must not be before valid_from' });
  }
  if (TEST_LENDERS.has(value.lender)) {
    faults.push({ row, field: 'lender', message: 'is a lender of the designated test merchants' });
  }
  if (TEST_MERCHANTS.has(value.merchant_id)) {
    faults.push({
      row,
      field: 'merchant_id',
      message: 'is a designated test merchant, whose answers are fixed',
    });
  }
  return faults;
}

/** Messages of the domain name its own fields; the file knows them by other names. */
const inFileNames = (message: string) =>
  message.replaceAll(
    /\b[a-z]+(?:[A-Z][a-z]+)+\b/g,
    (word) => PRODUCT_NAMES[word as keyof typeof PRODUCT_NAMES] ?? word,
  );
