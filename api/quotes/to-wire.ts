import type { ProductItem, QuoteResponseBody } from '../../contracts/quote-response';
import type { FittedProduct } from '../../db/quotes/fitted-products';
import { formatPence } from '../../domain/money';
import type { DepositAdjustment, PricedProduct, Quote } from '../../domain/quote';
import { formatApr, formatRate } from '../../domain/repayment-plan';

/** The notice that goes with a list withheld for compliance. */
const NOT_AUTHORISED_NOTICE = {
  code: 'MERCHANT_FCA_NOT_AUTHORISED',
  message: 'The merchant is not authorised to communicate regulated credit promotions.',
};

export function quoteToWire(
  quote: Quote,
  quoteId: string,
  merchantReference: string | null,
): QuoteResponseBody {
  return {
    success: true,
    data: {
      service_quote_id: quoteId,
      merchant_reference: merchantReference,
      summary: { display: quote.display, finance_offer_summary: quote.summaryHtml },
      products: quote.shown.map(productToWire),
      ...(quote.withheldAsNotAuthorised && { products_notice: NOT_AUTHORISED_NOTICE }),
      ...(quote.depositAdjustment && { deposit_adjustment: adjustmentToWire(quote.depositAdjustment) }),
    },
  };
}

function productToWire(priced: PricedProduct): ProductItem {
  const { product, initialPaymentDue } = priced;
  const rateType = product.rateType === 'fixed' ? 'Fixed' : 'Variable';
  return {
    lender: product.lenderName,
    credit_product: product.creditProduct,
    purchase_price: formatPence(priced.purchasePricePence),
    customer_deposit: formatPence(priced.depositPence),
    loan_amount: formatPence(priced.loanPence),
    first_payment_type: product.firstPaymentType,
    first_payment_amount: formatPence(priced.firstPaymentAmountPence),
    initial_payment_due_value: initialPaymentDue.value,
    initial_payment_due_unit: initialPaymentDue.unit,
    apr: `${formatApr(product.aprBasisPoints)} ${rateType}`,
    annual_interest_rate: formatRate(priced.annualRateBasisPoints),
    number_of_repayments: product.numberOfRepayments,
    monthly_repayment: formatPence(priced.monthlyRepaymentPence),
    cost_of_credit: formatPence(priced.costOfCreditPence),
    total_amount_payable_excluding_deposit: formatPence(priced.totalPayablePence),
    merchant_finance_url: priced.financeUrl,
  };
}

function adjustmentToWire(adjustment: DepositAdjustment) {
  return {
    requested_deposit: formatPence(adjustment.requestedDepositPence),
    corrected_deposit: formatPence(adjustment.correctedDepositPence),
    adjustment_reason: adjustment.reason,
    affected_products: adjustment.affectedProducts.map(({ product, depositPence, loanPence }) => ({
      lender: product.lenderName,
      credit_product: product.creditProduct,
      customer_deposit: formatPence(depositPence),
      loan_amount: formatPence(loanPence),
    })),
  };
}

/** What is kept of every product that fitted: what an application may later be opened for. */
export function fittedProducts(quote: Quote): FittedProduct[] {
  return quote.fitted.map((priced) => ({
    productId: priced.product.productId,
    version: priced.product.version,
    lender: priced.product.lender,
    creditProduct: priced.product.creditProduct,
    depositPence: priced.depositPence,
    loanPence: priced.loanPence,
    monthlyRepaymentPence: priced.monthlyRepaymentPence,
    totalPayablePence: priced.totalPayablePence,
  }));
}
