import { register } from 'node:module'

// openapi-typescript needs the compiler's old API, which TypeScript 7 no longer has.
const hook = `export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context)`
register(`data:text/javascript,${encodeURIComponent(hook)}`)
