import { loadProductsOf, setProductActive, updateProducts } from '../../db/catalogue/products';
import { useApi } from '../support/api';
import { addMerchant } from '../support/merchants';
import { opsJson } from './run';

const api = useApi();
const share = (percent: number) => ({ basisPoints: percent * 100, fixedPence: 0 });

test('a quote says to operators which product it left out, and why, by the terms of that day', async () => {
  const { database } = api;
  await addMerchant(database, 'M100001', {
    products: [
      { creditProduct: 'Fits' },
      { creditProduct: 'Large', minLoanPence: 200_000 },
      { creditProduct: 'Small', maxLoanPence: 50_000 },
      { creditProduct: 'Low deposit', depositMax: share(5) },
      { creditProduct: 'High deposit', depositMin: share(50), minLoanPence: 60_000 },
      { creditProduct: 'Spring', validTo: '2020-05-31' },
      { creditProduct: 'Later', validFrom: '2090-01-01' },
      { creditProduct: 'Off' },
    ],
  });
  await setProductActive(database.db, { merchantId: 'M100001', creditProduct: 'Off', active: false });
  const asked = { merchant_id: 'M100001', loan_amount: '900.00', customer_deposit: '100.00' };
  const { body } = await api.quote(asked);
  expect(body.data.products.map((one: { credit_product: string }) => one.credit_product)).toEqual(['Fits']);
  expect(JSON.stringify(body)).not.toContain('Large');
  const leftOut = async (): Promise<{ credit_product: string; version: number; why: string }[]> =>
    (await opsJson(database.url, 'quotes', 'show', body.data.service_quote_id)).left_out;
  const expected = {
    Large: 'its loan of 900.00 is below the minimum of 2000.00',
    Small: 'its loan of 900.00 is above the maximum of 500.00',
    'Low deposit': 'its deposit of 100.00 is above the maximum of 50.00',
    'High deposit': 'its loan of 500.00 is below the minimum of 600.00',
    Spring: 'valid until 2020-05-31',
    Later: 'valid from 2090-01-01 on',
    Off: 'inactive then',
  };
  const found = async () =>
    Object.fromEntries((await leftOut()).map(({ credit_product: name, why }) => [name, why]));
  expect(await found()).toEqual(expected);

  // What is changed or added afterwards says nothing about this quote.
  for (const product of await loadProductsOf(database.db, ['M100001']))
    if (product.definition !== null && product.creditProduct === 'Large')
      await updateProducts(database.db, [
        { ...product, definition: { ...product.definition, minLoanPence: 10_000 } },
      ]);
  expect(await found()).toEqual(expected);
  expect((await leftOut()).map(({ version }) => version)).toEqual([1, 1, 1, 1, 1, 1, 1]);
});
