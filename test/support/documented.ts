import { z } from 'zod'
import { isTried } from '../../api/openapi/operation.ts'
import { exampleOf, takesSeveral } from '../../api/parameters/parse.ts'
import type { Route } from '../../api/route/define-route.ts'
import { routes } from '../../api/routes.ts'

/** Whether a route is about one record: it takes a single id, and requires the id or the name. */
export const isOfOne = ({ query }: Route) =>
  query.id !== undefined && query.name !== undefined && !takesSeveral(query.id)

/** Whether `fields` would be requested for JSON that is a single object. */
const isForTables = ({ response }: Route, query: readonly string[]) =>
  query.includes('fields') && response instanceof z.ZodObject

/** Every route with the examples of its documentation: with the required parameters, and with each optional one. */
export const documentedRequests: readonly { readonly route: Route; readonly url: string }[] = routes
  // Answers of providers are served only if the operator turns it on.
  .filter(({ isEndless, path }) => !isEndless && path !== '/data/provenance/raw')
  .flatMap((route) => {
    const example = (name: string) => {
      const documented = exampleOf(route.query[name] as z.ZodType)
      const first: unknown = Array.isArray(documented) ? documented[0] : documented
      if (first === undefined) throw new Error(`${route.path}: ${name} has no example`)
      return encodeURIComponent(String(first))
    }
    // A cursor comes from a response, so it has no example.
    const names = Object.keys(route.query).filter((name) => name !== 'cursor')
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => example(name))
    const inQuery = names.filter((name) => !route.path.includes(`{${name}}`))
    const needed = inQuery.filter((name) => !route.query[name]?.safeParse(undefined).success)
    const who = isOfOne(route) ? ['name'] : []
    // An interval, or a number of points instead.
    const isChosen = 'points' in route.query && needed.includes('start')
    // Tokens by name, or the number of the largest ones.
    const isBasket = 'of' in route.query && 'top' in route.query
    const alsoNeeded = (name?: string) => [
      ...who,
      ...(isChosen && name !== 'points' ? ['interval'] : []),
      ...(isBasket && name !== 'of' ? ['top'] : []),
    ]
    const queries = [undefined, ...inQuery].map((name) => [
      ...new Set([...needed, ...alsoNeeded(name), ...(name ? [name] : [])]),
    ])
    return queries.map((query) => ({
      route,
      url: `${path}?${query.map((name) => `${name}=${example(name)}`).join('&')}${isForTables(route, query) ? '&format=csv' : ''}`,
    }))
  })

/** The parameters of a first request to a route, as an object. */
export const toFirstQuery = (route: Route): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(route.query)
      .filter(([name]) => isTried(route, name) || route.path.includes(`{${name}}`))
      .map(([name, schema]) => [name, exampleOf(schema as z.ZodType)]),
  )
