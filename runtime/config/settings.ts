import { z } from 'zod';
import { readServerTls } from '../../db/postgres/driver/server-socket';
import { readServers } from '../../db/postgres/driver/servers';
import { SENDS_PER_ENDPOINT, SENDS_PER_FAST_ENDPOINT } from '../../domain/delivery-now';
import { LEAST_RETENTION_DAYS, USUAL_RETENTION_DAYS, type RetentionKind } from '../../domain/retention';

const text = z.string();
const optionalText = text.optional();
const host = text.default('127.0.0.1');
const whole = (lowest: number, highest: number, usual: number) =>
  z.coerce.number().int().min(lowest).max(highest).default(usual);
const port = (usual: number) => whole(1, 65_535, usual);
const optionalUrl = (protocol: RegExp) => z.url({ protocol, abort: true }).optional();
/** As Temporal accepts it in the name of a build. */
const buildId = text.regex(/^[\w+-][\w.+-]{0,99}$/).optional();

const list = text.transform((items) =>
  items
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

const ADDRESSES = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);

/** An IP address, or a CIDR that is not everything. */
const addressOrRange = text.superRefine((given, context) => {
  if (ADDRESSES.safeParse(given).success && !given.endsWith('/0')) return;
  context.addIssue({ code: 'custom', message: `not an address or a CIDR: ${given}` });
});
const addresses = list.pipe(z.array(addressOrRange)).default([]);

const apiSettings = {
  API_HOST: host.describe('Address of the public listener.'),
  API_PORT: port(8443).describe('Port of the public listener.'),
  INTERNAL_HOST: host.describe('Address of the internal listener, of a worker too.'),
  INTERNAL_PORT: port(8081).describe(
    'Port of the internal listener: credit applications, health, readiness, metrics.',
  ),
  PUBLIC_URL: optionalUrl(/^https$/)
    .transform((url) => url?.replace(/\/+$/, ''))
    .describe(
      'Where partners reach the service, `https://…`, as `/openapi.json` and the served guide name it; by default `https://localhost:API_PORT`.',
    ),
  RATE_LIMIT_PER_MINUTE: whole(1, 100_000_000, 100).describe('Calls per API key and minute.'),
  KEYLESS_CALLS_PER_MINUTE: whole(1, 100_000_000, 300).describe(
    'Calls without a valid key per source address (IPv6: per /64) and minute, in each API process; without a valid service key as many, counted apart.',
  ),
  TLS_CERT_FILE: optionalText.describe(
    'Certificate chain of the public listener, PEM, leaf first. Belongs with `TLS_KEY_FILE`.',
  ),
  TLS_KEY_FILE: optionalText.describe('Its key, PEM. SIGHUP has both read again.'),
  TRUSTED_PROXIES: addresses.describe(
    'Addresses or CIDRs of proxies whose `X-Forwarded-Proto` counts, comma-separated.',
  ),
  SHUTDOWN_DELAY_MS: whole(0, 600_000, 0).describe(
    'How long a stopping process still serves while `/ready` answers 503, so that a proxy stops sending.',
  ),
  LENDER_EVENT_WAIT_SECONDS: whole(1, 86_400, 600).describe(
    "How long a lender's event that comes before the steps it depends on waits for them, in seconds. Then a worker applies it without them.",
  ),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least level that is logged, by workers too.'),
} as const;

/** An address with several servers is not a valid URL, so the URL of the first one is checked. */
const postgresUrl = text
  .superRefine((given, context) => {
    try {
      const { url } = readServers(given);
      if (!/^postgres(ql)?:$/.test(new URL(url).protocol)) throw new Error('it begins with postgres://');
      readServerTls(url);
    } catch (error) {
      context.addIssue({ code: 'custom', message: (error as Error).message });
    }
  })
  .optional();

const storeSettings = {
  DATABASE_URL: postgresUrl.describe(
    'Postgres, `postgres://…`. Required, but for `npm start`, which brings one of its own. TLS: `?sslmode=verify-full&sslrootcert=/path/ca.pem`. ' +
      'Several servers, of which one leads: `postgres://user:password@a,b/quotes?target_session_attrs=read-write`.',
  ),
  DATABASE_POOL_SIZE: whole(2, 200, 10).describe(
    'Most pooled connections of a process, in an API process half of them for what partners store; it has five more.',
  ),
  DATABASE_TIMEOUT_MS: whole(1, 600_000, 3_000).describe(
    'Longest wait for Postgres per look-up or insert, and longest statement.',
  ),
  REDIS_URL: optionalUrl(/^rediss?$/)
    .refine(
      (url) => url === undefined || /^\/?\d*$/.test(new URL(url).pathname),
      'after the host comes the number of a database, or nothing',
    )
    .describe('Redis that API processes share the rate limit through, `redis://…` or `rediss://…`.'),
} as const;

const ladder = text
  .regex(/^0(,\d{1,7}){0,29}$/, 'must be 0 and then whole seconds, comma-separated, at most 30 in all')
  .transform((steps) => steps.split(',').map((part) => Number(part) * 1_000))
  .optional();

const localTargets = text.transform((targets, check) =>
  targets === ''
    ? []
    : targets.split(',').map((pair) => {
        const [, name = '', port = ''] = /^([a-z0-9.-]+):(\d{1,5})$/i.exec(pair.trim()) ?? [];
        if (Number(port) < 1 || Number(port) > 65_535)
          check.addIssue(`must be name:port, comma-separated, such as localhost:8450; not ${pair}`);
        return { name: name.toLowerCase(), port: Number(port) };
      }),
);

const deliverySettings = {
  ENVIRONMENT: z
    .enum(['production', 'development'])
    .default('production')
    .describe('`production` refuses the settings that are for development only.'),
  WEBHOOK_KEYS: optionalText.describe(
    'Keys that webhook secrets and private keys are sealed with: `id:base64,…`, 32 bytes each; the first one seals. Required by workers.',
  ),
  WEBHOOK_LOCAL_TARGETS: localTargets
    .default([])
    .describe(
      'Receivers on this machine that webhooks may go to: `localhost:8450,…`. Their names mean 127.0.0.1. Development only.',
    ),
  WEBHOOK_CA_FILE: optionalText.describe(
    'Authority, PEM, that webhook endpoints may be certified by in addition to the public ones. Allowed in production too.',
  ),
  OUTBOUND_PROBE: text
    .regex(/^(\[[\da-fA-F:.]+\]|[^\s/:]+):\d{1,5}$/, 'must be host:port')
    .optional()
    .describe(
      '`host:port` outside, such as `example.com:443`. When all of fewer than ten endpoints fail, a worker opens a connection to it: if that fails too, its own network is at fault. Nothing is sent.',
    ),
  DELIVERY_LADDER_SECONDS: ladder.describe(
    'Wait before each attempt of a status notification, comma-separated; fixed for a notification when its delivery begins. The first is 0. Without it the 11 attempts over 75.6 h that partners were told of.',
  ),
  FAST_ENDPOINT_SLOTS: whole(SENDS_PER_ENDPOINT, SENDS_PER_FAST_ENDPOINT, SENDS_PER_FAST_ENDPOINT).describe(
    'Most first attempts at once to an endpoint that answers within half a second, while others leave it room and the worker has CPU to spare. Every endpoint has 16.',
  ),
  WORKER_PORT: port(8082).describe('Port of the internal listener of a worker: health, readiness, metrics.'),
  WORKER_BUILD_ID: buildId.describe(
    'Build of the code of this worker, another for every release. With it the worker works once `ops deployments set-current` has named it.',
  ),
} as const;

const flag = z.enum(['true', 'false', '1', '0']);

/** Where Temporal is and how to connect, by the names that `@temporalio/envconfig` reads. */
export const temporalSettings = {
  TEMPORAL_ADDRESS: text
    .regex(/^[^\s/]+:\d+$/, 'must be host:port')
    .optional()
    .describe('`host:port`. Without it 127.0.0.1 and `STACK_PORT`, where `npm start` brings one of its own.'),
  TEMPORAL_NAMESPACE: optionalText.describe('Its namespace; without it `default`.'),
  TEMPORAL_API_KEY: optionalText.describe('API key (Temporal Cloud). Implies TLS.'),
  TEMPORAL_TLS: flag.optional().describe('Whether to use TLS.'),
  TEMPORAL_TLS_SERVER_NAME: optionalText.describe('Name that its certificate must have.'),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: optionalText.describe('Authority to trust, PEM file.'),
  TEMPORAL_TLS_CLIENT_CERT_PATH: optionalText.describe('Our certificate, PEM file.'),
  TEMPORAL_TLS_CLIENT_KEY_PATH: optionalText.describe('Its key, PEM file.'),
  TEMPORAL_DEPLOYMENT_NAME: optionalText.describe(
    "Name of the workers' deployment, for workers and `ops`; without it `partner-finance-quote-service`. Temporal's Worker Controller sets it.",
  ),
  TEMPORAL_WORKER_BUILD_ID: buildId.describe(
    "`WORKER_BUILD_ID` by the name that Temporal's Worker Controller sets; counts where that is not set.",
  ),
  TEMPORAL_UI_URL: optionalUrl(/^https?$/).describe(
    "Address of Temporal's web page; `ops` then gives the address of each delivery there.",
  ),
} as const;

export type TemporalSettings = Readonly<z.infer<z.ZodObject<typeof temporalSettings>>>;

const traceSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalUrl(/^https?$/).describe(
    'Collector that traces are sent to (OTLP over HTTP, `<address>/v1/traces`). Without it none are made.',
  ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Share of the traces that is kept, 0 to 1; API and workers need the same.'),
} as const;

/** Only `migrate` reads these. */
const days = (kind: RetentionKind) => whole(LEAST_RETENTION_DAYS, 36_500, USUAL_RETENTION_DAYS[kind]);

/** Settings of how long data is kept; docs/decisions/postgres.md gives the reasons of the defaults. */
const retentionSettings = {
  RETENTION_AT: text
    .regex(/^(([01]\d|2[0-3]):[0-5]\d|off)$/, 'must be a time of day such as 03:15, or off')
    .default('03:15')
    .describe('Time of day (UTC) at which what is past its time is removed; off: never.'),
  RETENTION_PAYLOADS_DAYS: days('payloads').describe(
    'Days that bodies of notifications and answers are kept: read by migrate only, as the next three.',
  ),
  RETENTION_ATTEMPTS_DAYS: days('attempts').describe('Days that delivery attempts are kept.'),
  RETENTION_NOTIFICATIONS_DAYS: days('notifications').describe(
    'Days that notifications are kept, without their bodies.',
  ),
  RETENTION_QUOTES_DAYS: days('quotes').describe('Days that quotes are kept.'),
} as const;

const opsSettings = {
  OPS_ACTOR: text
    .regex(
      /^(?=.{1,120}$)[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u,
      'must be 1 to 120 visible characters: who you are, such as jane.doe',
    )
    .optional()
    .describe(
      'Who changes something through `ops`, for the change log. Without it the login name, unless that is a shared account (`node`, `root`, …) in production.',
    ),
} as const;

const stackSettings = {
  DATA_DIR: text.min(1).default('.data').describe('Where it keeps its data.'),
  STACK_PORT: whole(1024, 60_000, 7233).describe(
    'Port of the embedded Temporal. The others move with it: Postgres (+1), the web page of Temporal (+1000), shop (+1211).',
  ),
} as const;

/** Every setting with its bounds, default and description, in the groups of docs/settings.md. */
export const SETTING_GROUPS = {
  'API processes': apiSettings,
  'Postgres and Redis': storeSettings,
  'Workers and webhooks': deliverySettings,
  Temporal: temporalSettings,
  Traces: traceSettings,
  'How long data is kept': retentionSettings,
  'The command line': opsSettings,
  'The embedded stack': stackSettings,
} as const;

export const settings = z.object({
  ...apiSettings,
  ...storeSettings,
  ...deliverySettings,
  ...temporalSettings,
  ...traceSettings,
  ...retentionSettings,
  ...opsSettings,
  ...stackSettings,
});

export type Config = Readonly<z.infer<typeof settings>>;

/** Settings that may contain a password. The boot log says only whether they are set. */
export const SECRET = new Set([
  'DATABASE_URL',
  'REDIS_URL',
  'WEBHOOK_KEYS',
  'TEMPORAL_API_KEY',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
]);
