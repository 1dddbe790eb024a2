const Sequencer = require('@jest/test-sequencer').default;

/** They take minutes. On a machine without times of earlier runs Jest begins them last, and all others are done before they are. */
const LONGEST = ['cluster', 'delivery-temporal', 'storm', 'trace', 'stack', 'delivery-workers'];

const place = ({ path }) => LONGEST.findIndex((name) => path.endsWith(`/${name}.system.ts`)) >>> 0;

/** Begins the longest files first. */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    return tests.toSorted((one, other) => place(one) - place(other));
  }
};
