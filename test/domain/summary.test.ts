import * as fc from 'fast-check';
import { LONGEST_SUMMARY, summaryHtml, type SummaryOffer, type SummaryRequest } from '../../domain/quote';
import { visibleText } from '../support/visible-text';

const LINK = 'https://shop.example/f?a=1&loan_amount=1200.00#"><script>';
const HEADLINE = 'Spread the cost with finance. Learn more';

function offer(monthlyRepaymentPence: number, aprBasisPoints: number): SummaryOffer {
  return { monthlyRepaymentPence, product: { aprBasisPoints } };
}

function text(offers: SummaryOffer[], changes: Partial<SummaryRequest> = {}): string {
  return visibleText(
    summaryHtml({ fcaAuthorised: true, summaryStyle: 'offer', offers, link: LINK, ...changes }),
  );
}

describe('the text of a summary', () => {
  it.each([
    [10_521, 990, 'Spread the cost from £105.21 a month at 9.9% APR representative. Learn more'],
    [10_521, 1_000, 'Spread the cost from £105.21 a month at 10.0% APR representative. Learn more'],
    [1_234_567, 1_990, 'Spread the cost from £12,345.67 a month at 19.9% APR representative. Learn more'],
    [123_456_789, 1_990, 'From £1,234,567.89 a month at 19.9% APR representative. Learn more'],
    [5_000, 0, 'Interest-free credit from £50.00 a month at 0% APR representative. Learn more'],
    [123_456_789, 0, 'Interest-free from £1,234,567.89 a month, 0% APR representative. Learn more'],
  ])('for %d pence a month at %d basis points', (pence, apr, expected) => {
    expect(text([offer(pence, apr)])).toBe(expected);
    expect(Array.from(expected).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
  });

  it('is the plain headline when no template fits', () => {
    expect(text([offer(Number.MAX_SAFE_INTEGER, 1_000_000_000)])).toBe(HEADLINE);
  });

  it('names the lowest monthly price, the first in order among equals', () => {
    expect(text([offer(300, 990), offer(200, 1_990), offer(200, 0)])).toContain('£2.00 a month at 19.9% APR');
  });

  it('is the plain headline for a merchant that chose it or is not authorised', () => {
    expect(text([offer(300, 990)], { summaryStyle: 'headline' })).toBe(HEADLINE);
    expect(text([offer(300, 990)], { fcaAuthorised: false })).toBe(HEADLINE);
    expect(HEADLINE).not.toMatch(/[\d%£]/);
  });
});

it('is one link, escaped, and the text within the limit', () => {
  const offers = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 50_000_000_000 }), fc.integer({ min: 0, max: 100_000 })),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(offers, fc.webUrl({ withQueryParameters: true, withFragments: true }), (pairs, url) => {
      const link = `${url}"'<>`;
      const html = summaryHtml({
        fcaAuthorised: true,
        summaryStyle: 'offer',
        offers: pairs.map(([pence, tenths]) => offer(pence, tenths * 10)),
        link,
      });
      expect(Array.from(visibleText(html)).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
      const href = html.match(/^[^<>]* <a href="([^"<>']*)">Learn more<\/a>$/)?.[1];
      expect(visibleText(href ?? '')).toBe(link);
    }),
    { numRuns: 1_000 },
  );
});
