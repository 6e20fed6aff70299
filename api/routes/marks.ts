import { z } from 'zod'
import { oneId } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { defineRoute } from '../route/define-route.ts'
import { daoKind, tokenKind } from '../route/entities.ts'
import { toInitials, toMark } from '../svg/mark.ts'

export const marksRoute = defineRoute({
  operation: 'getMark',
  path: '/marks/{markOf}.svg',
  tag: 'Charts',
  summary: 'A mark of a DAO or a token as an image',
  description:
    'Letters on a colour derived from the id, as a replacement if `image` is null or cannot be loaded. It is not a logo.',
  query: { markOf: oneId('DAO or token', daoKind.example.id) },
  response: z.string().describe('The image as SVG.'),
  contentType: 'image/svg+xml',
  datasets: [],
  handle: async ({ query, registry }) => {
    const dao = daoKind.byId(registry, query.markOf)
    const token = tokenKind.byId(registry, query.markOf)
    const found = dao ?? token
    if (found === undefined) throw new Problem('not_found', 'No DAO and no token has this id.', { param: 'markOf' })
    const letters = dao === undefined ? (token?.symbol ?? '') : toInitials(dao.name)
    return { body: Buffer.from(toMark(found.id, found.name, letters)), asOf: registry.changedAt }
  },
})
