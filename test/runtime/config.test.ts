import { misspelt, readConfig, targetRules } from '../../runtime/config/config';

test.each([
  ['postgres://u:p@a,b/d?target_session_attrs=standby', 'target_session_attrs is one of read-write, primary'],
  ['postgres://u:p@a,,b/d', 'not a list of hosts'],
  ['postgres://u:p@a:x,b/d', 'not a list of hosts'],
  ['postgres://u:p@a,b/d?sslmode=full', 'sslmode is one of'],
  ['mysql://u:p@a/d', 'it begins with postgres://'],
  ['nothing', 'not a URL'],
  [
    'postgres://u:p@a/d?sslmode=prefer&sslrootcert=ca.pem',
    'sslrootcert wants sslmode=verify-full or verify-ca',
  ],
  ['postgres://u:p@a/d?sslmode=verify-full&sslrootcert=/nowhere', 'ENOENT'],
  [`postgres://u:p@a/d?sslmode=verify-full&sslrootcert=${__filename}`, 'sslrootcert: /'],
  ['postgres://u:p@a/d?ssl=true', 'say sslmode='],
  ['postgres://u:p@a/d?sslmode=verify-full&channel_binding=require', 'leave out channel_binding: of libpq'],
  ['postgres://u:p@a/d?sslmode=require&sslcert=client.pem', 'leave out sslcert: of libpq'],
  ['postgres://u:p#q@a/d', 'in user and password, % is written as %25'],
  ['postgres://u:5/q@a/d?sslmode=disable', 'in user and password, % is written as %25'],
  ['postgres://u:100%@a/d', 'in user and password, % is written as %25'],
  ['postgres://u:p%E9@a/d', 'in user and password, % is written as %25'],
  ['postgres:///d?host=/var/run/postgresql', 'its host is a name or an address'],
  ['postgres://u:p@%2Fvar%2Frun%2Fpostgresql/d', 'its host is a name or an address'],
])('DATABASE_URL may not be %s', (DATABASE_URL, why) => {
  expect(() => readConfig({ DATABASE_URL })).toThrow(`DATABASE_URL: ${why}`);
});

test.each([
  'postgres://u:p@a,b:5433,[::1]:5434/d',
  'postgresql://a,b/d?target_session_attrs=read-write',
  'postgres://u%40v:p%2F%23%3F%25@a/d?application_name=x@y',
])('DATABASE_URL may be %s', (DATABASE_URL) => {
  expect(readConfig({ DATABASE_URL })).toMatchObject({ DATABASE_URL });
});

test('a value may end with a line break, as a Secret that was made with echo does', () => {
  const given = {
    TEMPORAL_ADDRESS: 'temporal:7233\n',
    TEMPORAL_NAMESPACE: 'quotes\r\n',
    LOG_LEVEL: ' info',
    REDIS_URL: '\n',
  };
  expect(readConfig(given)).toMatchObject({
    TEMPORAL_ADDRESS: 'temporal:7233',
    TEMPORAL_NAMESPACE: 'quotes',
    LOG_LEVEL: 'info',
  });
  expect(readConfig(given).REDIS_URL).toBeUndefined();
});

test('a value may stand in quotes, as docker --env-file and kubectl --from-env-file leave it', () => {
  const given = {
    DATABASE_URL: '"postgres://u:p@a/d"\n',
    API_PORT: "'8443'",
    TEMPORAL_NAMESPACE: '"quotes"',
    OPS_ACTOR: '"jane"',
    WEBHOOK_CA_FILE: '""',
  };
  const read = {
    DATABASE_URL: 'postgres://u:p@a/d',
    API_PORT: 8443,
    TEMPORAL_NAMESPACE: 'quotes',
    OPS_ACTOR: 'jane',
  };
  expect(readConfig(given)).toMatchObject(read);
  expect(readConfig(given).WEBHOOK_CA_FILE).toBeUndefined();
  expect(readConfig({ TEMPORAL_NAMESPACE: '"quotes' }).TEMPORAL_NAMESPACE).toBe('"quotes');
});

test.each(['nothing', 'http://h'])('REDIS_URL %s is refused by its name', (REDIS_URL) => {
  expect(() => readConfig({ REDIS_URL })).toThrow('REDIS_URL: Invalid URL');
});

test.each(['redis://h/staging', 'rediss://h/0/1'])('REDIS_URL may not be %s', (REDIS_URL) => {
  expect(() => readConfig({ REDIS_URL })).toThrow('REDIS_URL: after the host comes the number of a database');
});

test.each([
  ['API_PROT', 'API_PORT'],
  ['REDIS_URI', 'REDIS_URL'],
  ['RATE_LIMT_PER_MINUTE', 'RATE_LIMIT_PER_MINUTE'],
  ['RETENTION_QUOTE_DAY', 'RETENTION_QUOTES_DAYS'],
  ['Database_URL', undefined],
  ['TEMPORAL_TLS_CLIENT_KEY_DATA', 'TEMPORAL_TLS_CLIENT_KEY_PATH'],
  ['webhook-keys', undefined],
])('%s is taken for a slip of %s', (given, meant) => {
  const slips = misspelt({ [given]: 'secret', API_PORT: '1', PATH: '/bin', SSL_CERT_FILE: 'x' });
  expect(slips).toEqual(
    meant === undefined ? [] : [`${given} is no setting and changes nothing: is ${meant} meant?`],
  );
});

describe('where webhooks may go', () => {
  const rules = (WEBHOOK_LOCAL_TARGETS: string, ENVIRONMENT = 'development') =>
    targetRules(readConfig({ WEBHOOK_LOCAL_TARGETS, ENVIRONMENT }));

  it('is a receiver on this machine that is named, and nothing else private', () => {
    expect(rules('localhost:8450,Hooks.partner.example:9443')).toEqual({
      allowedCidrs: ['127.0.0.1/32'],
      allowedPorts: [8450, 9443],
      hosts: new Map([
        ['localhost', ['127.0.0.1']],
        ['hooks.partner.example', ['127.0.0.1']],
      ]),
    });
  });

  it.each(['', 'production', 'development'])('is else a public address at port 443 (%s)', (environment) => {
    expect(rules('', environment)).toEqual({ allowedCidrs: [], allowedPorts: [], hosts: new Map() });
  });

  it('is in production never this machine', () => {
    expect(() => rules('localhost:8450', 'production')).toThrow(
      'WEBHOOK_LOCAL_TARGETS cannot be used in production.',
    );
  });

  it.each(['localhost', '8450', 'localhost:', ':8450', 'localhost:84500', 'localhost:0', 'a b:1', 'a=::1'])(
    'is not read from %s',
    (text) => {
      expect(() => rules(text)).toThrow(/WEBHOOK_LOCAL_TARGETS/);
    },
  );
});
