import type { SenderOptions } from '../outbound/sender';
import { ConfigError, type Config } from './config/config';

/** Where webhooks may go: public addresses at port 443, and in development receivers on this machine that are named. @throws ConfigError */
export function targetRules({
  ENVIRONMENT,
  WEBHOOK_LOCAL_TARGETS: targets,
}: Pick<Config, 'ENVIRONMENT' | 'WEBHOOK_LOCAL_TARGETS'>): Pick<
  SenderOptions,
  'allowedCidrs' | 'allowedPorts'
> & { hosts: ReadonlyMap<string, readonly string[]> } {
  if (ENVIRONMENT === 'production' && targets.length > 0)
    throw new ConfigError('WEBHOOK_LOCAL_TARGETS cannot be used in production.');
  return {
    allowedCidrs: targets.length === 0 ? [] : ['127.0.0.1/32'],
    allowedPorts: targets.map(({ port }) => port),
    hosts: new Map(targets.map(({ name }) => [name, ['127.0.0.1']])),
  };
}
