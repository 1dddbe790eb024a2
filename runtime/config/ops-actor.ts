import { ConfigError, type Config } from './config';

/** Accounts that belong to a machine, an image or a team, and so to nobody; in lower case. */
const SHARED = new Set(
  `admin administrator app apps azureuser bin centos ci daemon debian deploy deployer dev developer docker ec2-user fedora git guest jenkins
  nobody node opc operator operators ops pi postgres quotes root runner service services support sys system sysadmin ubuntu user
  vagrant www-data`.split(/\s+/),
);
/** What a process has instead of a login name where its user has none. */
const NUMBER = /^(?:uid )?\d+$/;

/**
 * Who makes a change through `ops`, as the change log names them: OPS_ACTOR, else the login name.
 * @throws ConfigError for a shared account in production, saying what to set. The embedded stack is not production.
 */
export function opsActor(
  config: Pick<Config, 'OPS_ACTOR' | 'ENVIRONMENT' | 'DATABASE_URL'>,
  loginName: string,
): string {
  const actor = config.OPS_ACTOR ?? loginName;
  const production = config.ENVIRONMENT === 'production' && config.DATABASE_URL !== undefined;
  if (production && (SHARED.has(actor.toLowerCase()) || NUMBER.test(actor))) {
    throw new ConfigError(
      `"${actor}" is an account that may be anybody's, and the change log names who makes a change: ` +
        'set OPS_ACTOR to your own name, such as OPS_ACTOR=jane.doe.',
    );
  }
  return actor;
}
