/** A product as an import file has it. */
export const PRODUCT_ROW = {
  merchant_id: 'M300001',
  credit_product: 'Classic 12',
  lender: 'lender_a',
  number_of_repayments: 12,
  apr: '9.9',
  minimum_loan_amount: '250.00',
  maximum_loan_amount: '25000.00',
};
