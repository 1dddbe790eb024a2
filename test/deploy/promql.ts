import { parser } from '@prometheus-io/lezer-promql';

/** What an expression reads. */
export interface Expression {
  /** Each metric, with the labels that are matched on it. */
  readonly metrics: readonly { readonly name: string; readonly labels: readonly string[] }[];
  /** Labels that it groups by. */
  readonly groupedBy: readonly string[];
}

/** Reads PromQL with Prometheus' own grammar. @throws when it is none. */
export function readExpression(expression: string): Expression {
  const text = expression.replaceAll('$__rate_interval', '5m');
  const metrics: { name: string; labels: string[] }[] = [];
  const groupedBy: string[] = [];
  let grouping = false;
  parser.parse(text).iterate({
    enter(node) {
      const word = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${expression}`);
      if (node.name === 'Identifier') metrics.push({ name: word, labels: [] });
      if (node.name === 'GroupingLabels') grouping = true;
      if (node.name === 'LabelName') (grouping ? groupedBy : metrics.at(-1)?.labels)?.push(word);
    },
    leave(node) {
      if (node.name === 'GroupingLabels') grouping = false;
    },
  });
  return { metrics, groupedBy };
}
