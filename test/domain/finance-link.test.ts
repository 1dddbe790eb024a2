import * as fc from 'fast-check';
import { linkParameters, prepareLinks } from '../../domain/finance-link';
import { readFinanceLink } from '../support/finance-link';
import { forAll } from './builders';

function link(merchantFinanceUrl: string, merchantReference: string | null = null): string {
  return prepareLinks({ merchantFinanceUrl, quoteId: 'qte_1', merchantReference })(108_000, 12_000, null);
}

const OURS = 'loan_amount=1080.00&customer_deposit=120.00&service_quote_id=qte_1';

describe('a link', () => {
  it.each([
    ['https://shop.example', `https://shop.example?${OURS}`],
    ['https://shop.example/finance', `https://shop.example/finance?${OURS}`],
    ['https://shop.example/finance?', `https://shop.example/finance?${OURS}`],
    ['https://shop.example/f#apply', `https://shop.example/f?${OURS}#apply`],
    ['https://shop.example/f?a=1&b=2#apply', `https://shop.example/f?a=1&b=2&${OURS}#apply`],
    // Kept to the letter: order, case, escapes of either kind, empty and valueless parameters, `?` and `/` in them.
    ['https://shop.example/f?b=%7e+x&A&a=&&c=?/#', `https://shop.example/f?b=%7e+x&A&a=&&c=?/&${OURS}#`],
    ['https://shop.example/f?a=1&', `https://shop.example/f?a=1&&${OURS}`],
    ['https://shop.example/f?&#x', `https://shop.example/f?&&${OURS}#x`],
    ['https://shop.example/f?utm=%E4%zz', `https://shop.example/f?utm=%E4%zz&${OURS}`],
    ['https://shop.example/f#?loan_amount=1', `https://shop.example/f?${OURS}#?loan_amount=1`],
    ['https://münchen.example/größe?q=ß', `https://münchen.example/größe?q=ß&${OURS}`],
    ['https://shop.example:8443/a%2Fb;v=1', `https://shop.example:8443/a%2Fb;v=1?${OURS}`],
  ])('to %s keeps it and adds ours', (merchantUrl, expected) => {
    expect(link(merchantUrl)).toBe(expected);
  });

  it.each([
    ['?loan_amount=1&a=1', 'a=1&'],
    ['?a=1&customer_deposit=1', 'a=1&'],
    ['?quote_id=old&service_quote_id=old&credit_product=x&merchant_reference=y', ''],
    ['?a=1&loan%5Famount=1&b=2&loan_amount&quote_id', 'a=1&b=2&'],
    ['?Loan_Amount=1&my_quote_id=2', 'Loan_Amount=1&my_quote_id=2&'],
  ])('replaces what is ours in %s', (query, kept) => {
    expect(link(`https://shop.example/f${query}#x`)).toBe(`https://shop.example/f?${kept}${OURS}#x`);
  });

  it('carries product and reference in order, percent-encoded strictly', () => {
    const merchantFinanceUrl = 'https://shop.example/f?a=1';
    const links = prepareLinks({ merchantFinanceUrl, quoteId: 'qte_1', merchantReference: 'Order 1.2-3_4' });
    expect(links(108_000, 0, "0% 'BNPL' (12 + 36)* £&=é!")).toBe(
      'https://shop.example/f?a=1&loan_amount=1080.00&customer_deposit=0.00' +
        '&credit_product=0%25%20%27BNPL%27%20%2812%20%2B%2036%29%2A%20%C2%A3%26%3D%C3%A9%21' +
        '&service_quote_id=qte_1&merchant_reference=Order%201.2-3_4',
    );
  });

  it('is read back as it was written, the merchant’s own parameters untouched', () => {
    const own = fc.webUrl({ validSchemes: ['https'], withQueryParameters: true, withFragments: true });
    const amount = fc.integer({ min: 0, max: 99_999_999_999_999 });
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    forAll(
      300,
      own,
      amount,
      amount,
      text,
      fc.option(text),
      (url, loanPence, depositPence, product, merchantReference) => {
        const parts = { quoteId: 'qte_1', merchantReference };
        const links = prepareLinks({ ...parts, merchantFinanceUrl: url });
        const written = links(loanPence, depositPence, product);
        expect(readFinanceLink(written)).toEqual({
          quoteId: 'qte_1',
          loanPence,
          depositPence,
          creditProduct: product.replaceAll(/\p{Surrogate}/gu, '\uFFFD'),
          merchantReference: merchantReference?.replaceAll(/\p{Surrogate}/gu, '\uFFFD') ?? null,
        });
        const [page = '', fragment] = url.split('#');
        expect(written.startsWith(page)).toBe(true);
        expect(written.split('#')[1]).toBe(fragment);
        // Built from its own link, the same link comes out: ours are replaced, not added again.
        const again = prepareLinks({ ...parts, merchantFinanceUrl: written });
        expect(readFinanceLink(again(loanPence, depositPence, product))).toEqual(readFinanceLink(written));
        expect(new URL(again(1, 1, product)).searchParams.getAll('loan_amount')).toEqual(['0.01']);
      },
    );
  });
});

it('the query of a link is read as a URL parser does', () => {
  const anyUrl = fc.webUrl({ validSchemes: ['https'], withQueryParameters: true, withFragments: true });
  const name = fc.constantFrom('loan_amount', 'loan%5Famount', 'quote_id', 'credit_product', 'x');
  const value = fc.oneof(fc.webQueryParameters(), fc.constantFrom('a+b', '%zz', 'ü', "'", '=', '?&'));
  forAll(100, anyUrl, fc.array(fc.tuple(name, value), { maxLength: 5 }), (url, pairs) => {
    const [page = '', fragment] = url.split('#');
    const ours = pairs.map((pair) => pair.join('=')).join('&');
    const link = `${page}${page.includes('?') ? '&' : '?'}${ours}${fragment === undefined ? '' : `#${fragment}`}`;
    const expected = new URL(link).searchParams;
    const { sent, repeated } = linkParameters(link);
    for (const [key, text] of Object.entries(sent)) expect(text).toBe(expected.get(key));
    expect(repeated !== null).toBe(Object.keys(sent).some((key) => expected.getAll(key).length > 1));
  });
});
