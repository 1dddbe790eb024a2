type WebhookUrlCheck =
  | {
      readonly ok: true;
      /** The URL as it will be called: parsed and written again. */
      readonly url: string;
      /** Lower case, international names as punycode. */
      readonly hostname: string;
      readonly port: number;
    }
  | { readonly ok: false; readonly reason: WebhookUrlFault; readonly message: string };

interface WebhookUrlRules {
  /** Ports allowed besides 443. */
  readonly allowedPorts?: readonly number[];
  /** Local names that are allowed, lower case: those of the embedded stack. */
  readonly allowedNames?: ReadonlySet<string>;
}

/** Why a URL cannot be registered. */
const MESSAGES = {
  not_a_url:
    'The URL must be a full https:// URL of at most 2,000 characters, without spaces or backslashes.',
  not_https: 'The URL must begin with https://.',
  user_info: 'The URL must not hold a user name or a password.',
  query: 'The URL must not have a query.',
  fragment: 'The URL must not have a fragment.',
  port: 'The URL must use port 443.',
  ip_address: 'The URL must name its host: an IP address, in any spelling, is not accepted.',
  trailing_dot: "The URL's host name must not end with a dot.",
  local_name: "The URL's host must be a public name, not localhost or a name without a dot.",
  host_name: "The URL's host is not a valid name.",
} as const;
export type WebhookUrlFault = keyof typeof MESSAGES;

const MAX_LENGTH = 2_000;
/** What URL parsers drop or rewrite silently. */
const REWRITTEN = /[\s\\\p{Cc}\p{Surrogate}]/u;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const DOTTED_QUAD = /^\d+(\.\d+){3}$/;

/**
 * Checks a webhook URL: https, no user information, query or fragment, port 443 or one that is allowed, and
 * a host that is a name. Says nothing of what the name resolves to.
 */
export function checkWebhookUrl(text: string, rules: WebhookUrlRules = {}): WebhookUrlCheck {
  const fault = (reason: WebhookUrlFault): WebhookUrlCheck => ({
    ok: false,
    reason,
    message: MESSAGES[reason],
  });
  if (text.length > MAX_LENGTH || REWRITTEN.test(text)) return fault('not_a_url');
  const url = parsedUrl(text);
  if (url === undefined) return fault('not_a_url');
  if (url.protocol !== 'https:') return fault('not_https');
  if (!/^https:\/\/[^/]/i.test(text)) return fault('not_a_url');
  // On the text: a parser does not tell an empty query, fragment or user name from none.
  if (text.includes('#')) return fault('fragment');
  if (text.includes('?')) return fault('query');
  const authority = text.slice('https://'.length).split('/', 1)[0] ?? '';
  if (authority.includes('@')) return fault('user_info');
  const { hostname } = url;
  const port = url.port === '' ? 443 : Number(url.port);
  if (port !== 443 && !(rules.allowedPorts ?? []).includes(port)) return fault('port');
  // The parser has turned decimal, hexadecimal, octal and full-width spellings into four numbers with dots.
  if (hostname.startsWith('[') || DOTTED_QUAD.test(hostname)) return fault('ip_address');
  if (hostname.endsWith('.')) return fault('trailing_dot');
  const labels = hostname.split('.');
  if (hostname.length > 253 || !labels.every((label) => LABEL.test(label))) return fault('host_name');
  const local = labels.length === 1 || labels.at(-1) === 'localhost';
  if (local && rules.allowedNames?.has(hostname) !== true) return fault('local_name');
  return { ok: true, url: url.href, hostname, port };
}

/**
 * A text as a URL; undefined when it is none. Never `URL.canParse`: once Node 20.20 has optimised a caller, that takes Latin-1 for UTF-8, so that
 * it refuses `https://bücher.example/` and takes hosts that the constructor refuses.
 */
export function parsedUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
