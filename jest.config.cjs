/** Jest runs what is compiled to require() only. */
const swc = (syntax) => [
  '@swc/jest',
  { swcrc: false, jsc: { target: 'es2022', parser: { syntax } }, module: { type: 'commonjs' } },
];

/** Real Postgres per run (globalSetup), one database per test file (test/support). */
module.exports = {
  testEnvironment: '<rootDir>/test/support/environment.ts',
  roots: ['<rootDir>/test', '<rootDir>/clients'],
  testMatch: ['**/*.test.ts'],
  transform: {
    '^.+\\.ts$': swc('typescript'),
    // Loads node:http with import().
    'otlp-exporter-base/.+\\.js$': swc('ecmascript'),
  },
  // The typed client is an ES module: its imports name what TypeScript makes of its files.
  moduleNameMapper: { '^(\\./[a-z-]+)\\.js$': '$1' },
  transformIgnorePatterns: ['/node_modules/(?!@opentelemetry/otlp-exporter-base/)'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Most tests take milliseconds; a machine may be slow, or busy.
  testTimeout: 120_000,
  // On two cores: tests wait for two fifths of their time, so three workers need a quarter less of it than two.
  maxWorkers: 3,
};
