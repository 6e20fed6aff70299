import { path } from './place.ts'

const element = document.querySelector<HTMLElement>('noscript[data-title]')

/**
 * HTML that the service wrote into the document of a path that is none of the pages: the error codes, or that nothing
 * has the path. With scripts enabled, a browser parses the element's content as text.
 */
export const served =
  element === null
    ? undefined
    : { path: path.peek(), title: element.dataset.title ?? '', html: element.textContent ?? '' }
