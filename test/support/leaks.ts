/** What may never be emitted, and how it looks. */
const SECRETS = {
  'API key': /sk_(?:test|live)_[0-9A-Za-z]{32}/,
  'service key': /svc_[0-9A-Za-z]{32}/,
  'webhook secret': /whsec_[0-9A-Za-z+/]{32,}={0,2}/,
  'Service-Signature': /v1=[0-9a-f]{64}/,
  'webhook private key': /whsk_[0-9A-Za-z+/]{43}=/,
  'webhook-signature': /v1,[0-9A-Za-z+/]{43}=|v1a,[0-9A-Za-z+/]{86}==/,
  'encryption key': /[\w-]+:[0-9A-Za-z+/]{43}=/,
  'database password': /postgres(?:ql)?:\/\/[^:@/\s"]+:[^@\s"]+@/,
  'private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  'Bearer token': /Bearer [0-9A-Za-z_.~+/-]{16,}/,
} as const;

/** The secrets in a text, each by its kind with the line it is in; the secret itself is left out. */
export function findLeaks(text: string): string[] {
  return text.split('\n').flatMap((line) =>
    Object.entries(SECRETS).flatMap(([kind, pattern]) => {
      const found = pattern.exec(line);
      if (found === null) return [];
      const before = line.slice(Math.max(0, found.index - 120), found.index);
      return [`${kind}: ${before}[here]`];
    }),
  );
}
