import type { MerchantFileRow } from '../../ops/import/row-schemas';
import * as products from './products';
import type { SeedProduct } from './products';

export interface SeedMerchant {
  /** What a quote for it shows; begins with a word that scripts may rely on. */
  readonly shows: string;
  readonly merchant: MerchantFileRow;
  readonly products: readonly SeedProduct[];
}

const SIMPLE = [products.CLASSIC_12, products.INTEREST_FREE_10];

const shop = (
  merchantId: string,
  shows: string,
  fields: Omit<MerchantFileRow, 'merchant_id'>,
  own: readonly SeedProduct[] = SIMPLE,
): SeedMerchant => ({
  shows,
  merchant: { merchant_id: merchantId, fca_authorised: true, ...fields },
  products: own,
});

/** Merchants that show what the test merchants (domain/test-merchants.ts) do not, the one to try first in front. */
export function seedMerchants(demoPartner: string, otherPartner: string): SeedMerchant[] {
  return [
    shop(
      'M100001',
      'standard: interest-bearing, interest-free, buy now pay later, variable; loans 250.00 to 25000.00',
      { trading_name: 'Oak & Elm Furniture' },
      [
        products.INTEREST_FREE_6,
        products.INTEREST_FREE_10,
        products.INTEREST_FREE_12,
        products.CLASSIC_12,
        products.CLASSIC_24,
        products.CLASSIC_36,
        products.CLASSIC_48_CEIL,
        products.BUY_NOW_PAY_LATER,
        products.VARIABLE_24,
      ],
    ),
    shop(
      'M1000002',
      'standard rates: monthly and nominal rates, floor rounding, a deposit as first payment (seven-digit id)',
      { trading_name: 'Peak Cycles' },
      [products.MONTHLY_RATE_24, products.NOMINAL_RATE_36, products.PERSONAL_36_FLOOR],
    ),
    shop('M100005', 'deposit raised: merchant floor of 10 % of the price and at least 50.00', {
      trading_name: 'Lakeside Kitchens',
      deposit_floor: { percent: '10', amount: '50.00' },
    }),
    shop(
      'M100006',
      'deposit raised by products: no floor, all products ask for 10 %',
      { trading_name: 'Meadow Pianos' },
      [products.WITH_DEPOSIT_24, { ...products.CLASSIC_12, minimum_deposit: { percent: '10' } }],
    ),
    shop(
      'M100007',
      'differing deposits: products ask for 10 %, 20 % and nothing; no deposit_adjustment',
      { trading_name: 'Harbour Watches' },
      [
        products.WITH_DEPOSIT_24,
        { ...products.CLASSIC_36, minimum_deposit: { percent: '20', amount: '100.00' } },
        products.INTEREST_FREE_6,
      ],
    ),
    shop('M100010', 'summary only: the plain headline without the product list', {
      trading_name: 'Skyline Windows',
      show_products: false,
    }),
    shop('M100014', 'summary only, with a price: no product list, and summary_style offer', {
      trading_name: 'Beacon Boilers',
      show_products: false,
      summary_style: 'offer',
    }),
    shop('M100015', 'interest-free: its summary has the 0% form', { trading_name: 'Juniper Beds' }, [
      products.INTEREST_FREE_10,
    ]),
    shop(
      'M100016',
      'variable: the summary says that the rate may change',
      { trading_name: 'Tideway Boats' },
      [products.VARIABLE_24],
    ),
    shop('M100017', 'one repayment after 30 days, interest-free', { trading_name: 'Lantern Lighting' }, [
      products.PAY_AFTER_30_DAYS,
    ]),
    shop('M100018', 'one repayment after 3 months at a variable rate', { trading_name: 'Orchard Tools' }, [
      products.PAY_AFTER_3_MONTHS,
    ]),
    shop(
      'M100019',
      'pay in three, the first today: a fixed deposit and two repayments',
      { trading_name: 'Pebble Audio' },
      [products.PAY_IN_THREE],
    ),
    shop('M100011', 'headline: the plain headline although offers fit', {
      trading_name: 'Velvet Curtains',
      summary_style: 'headline',
    }),
    shop('AB-1C2D-3E4F-5G6H', 'alternative id: the other form of merchant_id', {
      trading_name: 'Northern Jewellers',
    }),
    shop('M100012', 'restricted: exists for the demo partner only', {
      trading_name: 'Members Golf',
      partner_access: 'restricted',
      partners: [demoPartner],
    }),
    shop('M100013', 'restricted to another partner: 404 for the demo partner', {
      trading_name: 'Private Yachts',
      partner_access: 'restricted',
      partners: [otherPartner],
    }),
  ];
}
