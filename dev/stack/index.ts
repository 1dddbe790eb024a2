export type { DevelopmentTls } from './types';
export { ensureWebhookKeys } from './files';
export { runStack } from './run';
export { startStack } from './start';
export { welcome } from './welcome';
export type { DemoData, Stack, StackInfo, StackOptions } from './types';
