/** Writes src/schema.ts from the OpenAPI document: `npm run generate`. With `--check` it writes nothing, and fails when the file would change. */
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString, COMMENT_HEADER, NULL } from 'openapi-typescript';
import ts from 'typescript';

const { factory } = ts;
/** `string & {}`: any other text, and editors still offer the values that are known. */
const anyOther = factory.createIntersectionTypeNode([
  factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
  factory.createTypeLiteralNode([]),
]);

const ast = await openapiTS(new URL('../../contracts/openapi.json', import.meta.url), {
  defaultNonNullable: false,
  transform({ type, 'x-extensible-enum': known }) {
    if (known === undefined) return undefined;
    const values = known.map((value) => factory.createLiteralTypeNode(factory.createStringLiteral(value)));
    return factory.createUnionTypeNode([...values, anyOther, ...(type.includes('null') ? [NULL] : [])]);
  },
});
const file = new URL('src/schema.ts', import.meta.url);
const text = `${COMMENT_HEADER}${astToString(ast)}`;
if (!process.argv.includes('--check')) await writeFile(file, text);
else if ((await readFile(file, 'utf8')) !== text) process.exitCode = 1;
