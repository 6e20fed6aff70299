import { register } from 'node:module'

// openapi-typescript needs the compiler's old interface, which TypeScript 7 has no more.
const hook = `export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context)`
register(`data:text/javascript,${encodeURIComponent(hook)}`)
