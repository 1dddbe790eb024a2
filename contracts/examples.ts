/** Examples of the document. A test sends the requests and compares the responses. */

export const QUOTE_REQUEST_EXAMPLES = {
  basket: {
    summary: 'A basket of £1,000.00 with a deposit of £100.00',
    value: {
      merchant_id: 'M000001',
      partner_id: 'P100001',
      loan_amount: '900.00',
      customer_deposit: '100.00',
      merchant_finance_url: 'https://shop.example/finance',
      merchant_reference: 'basket 2041',
    },
  },
} as const;

const link = (more: string) =>
  `https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00${more}&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6&merchant_reference=basket%202041`;

export const QUOTE_RESPONSE_EXAMPLES = {
  offers: {
    summary: 'Offers to show',
    value: {
      success: true,
      data: {
        service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
        merchant_reference: 'basket 2041',
        summary: {
          display: true,
          finance_offer_summary: `Spread the cost from £38.58 a month at 19.9% APR representative. <a href="${link('').replaceAll('&', '&amp;')}">Learn more</a>`,
        },
        products: [
          {
            lender: 'Test Lender A',
            credit_product: '12 months at 9.9% APR',
            purchase_price: '1000.00',
            customer_deposit: '100.00',
            loan_amount: '900.00',
            first_payment_type: 'monthly_repayment',
            first_payment_amount: '78.91',
            initial_payment_due_value: 1,
            initial_payment_due_unit: 'months',
            apr: '9.9% Fixed',
            annual_interest_rate: '5.21%',
            number_of_repayments: 12,
            monthly_repayment: '78.91',
            cost_of_credit: '46.92',
            total_amount_payable_excluding_deposit: '946.92',
            merchant_finance_url: link('&credit_product=12%20months%20at%209.9%25%20APR'),
          },
        ],
      },
    },
  },
  nothing: {
    summary: 'Nothing fits: show no finance',
    value: {
      success: true,
      data: {
        service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
        merchant_reference: null,
        summary: { display: false, finance_offer_summary: '' },
        products: [],
      },
    },
  },
} as const;
