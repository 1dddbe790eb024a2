/**
 * `/llms.txt` (llmstxt.org): what there is to read, for programs that read in place of people. Everything in it is Markdown, JSON or
 * source, served by this process.
 */
export const LLMS_TEXT = `# Partner Finance Quote Service

> Finance offers for the shoppers of UK merchants: one call answers a quote with a ready-to-display summary, and signed webhooks tell a
> partner's server of every credit application. Calls need HTTPS and a key (\`Authorization: Bearer sk_test_…\`); none is needed to read this.

## Documentation

- [Partner guide](/docs/guide.md): first quote, fields, display rules, webhooks and how to verify them, what to do when something was missed, errors, rate limits
- [OpenAPI document](/openapi.json): every call, every field, every error, with examples
- [Verifying a webhook](/docs/verify-webhook.md): verifiers for Node, Python, PHP, Java and Go, with programs that try them
- [Typed client for TypeScript](/docs/typescript-client.md): Node, Deno, Bun and edge runtimes, without dependencies
`;
