/** One element of an array as Postgres writes it: in quotation marks, or without any. */
const ELEMENT = /"((?:[^"\\]|\\.)*)"|([^{},]+)/gs;

/** text[] of one dimension, as postgres.js takes a type of its own. */
export const textArray = {
  to: 1009,
  from: [1009],
  serialize: (texts: readonly (string | null)[]): string =>
    `{${texts.map((text) => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`,
  parse: (literal: string): (string | null)[] =>
    [...literal.matchAll(ELEMENT)].map(([, quoted, bare]) =>
      bare === undefined ? (quoted ?? '').replace(/\\(.)/gs, '$1') : bare === 'NULL' ? null : bare,
    ),
};
