export type { DevelopmentTls } from './types';
export { ensureWebhookKeys } from './files';
export { runStack } from './run';
export { startStack } from './start';
export { welcome } from './welcome';
export type { DemoData, DemoOutcome, Stack, StackInfo, StackOptions } from './types';
