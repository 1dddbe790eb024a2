import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the route in logs, metrics and traces, where its URL has a pattern in it. */
    readonly routeName?: string;
  }
}

/** What logs, metrics and traces call the route of a request. Unknown paths share one name. */
export function routeNameOf({ routeOptions }: FastifyRequest): string {
  return routeOptions.config.routeName ?? routeOptions.url ?? 'none';
}

/** A path in which `{name}` stands for an id, as Fastify's URL and as the route's name. */
export function idRoute(path: string, patterns: Readonly<Record<string, string>>) {
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `:${name}(^${patterns[name]}$)`);
  return { url, options: { config: { routeName: path } } };
}
