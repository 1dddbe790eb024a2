import DefaultTheme from 'vitepress/theme';
import Reference from './reference.vue';
import './style.css';

// oxlint-disable-next-line import/no-default-export -- VitePress asks for one.
export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component('Reference', Reference),
};
