import { z } from 'zod'
import { toInitials, toMark } from '../svg/mark.ts'
import { oneId } from '../parameters/kinds.ts'
import { Problem } from '../problem/problem.ts'
import { defineRoute } from '../route/define-route.ts'
import { daoKind, tokenKind } from '../route/entities.ts'

export const marksRoute = defineRoute({
  operation: 'getMark',
  path: '/marks/{markOf}.svg',
  tag: 'Charts',
  summary: 'A mark of a DAO or a token as an image',
  description:
    'Its letters on a colour that follows from its id: what a list can show where `image` is null or its host does not answer. It is no logo.',
  query: { markOf: oneId('DAO or token', daoKind.example.id) },
  response: z.string().describe('The image as SVG.'),
  contentType: 'image/svg+xml',
  datasets: [],
  handle: async ({ query, registry }) => {
    const dao = daoKind.byId(registry, query.markOf)
    const token = tokenKind.byId(registry, query.markOf)
    const found = dao ?? token
    if (found === undefined)
      throw new Problem('not_found', 'There is no DAO and no token with this id.', { param: 'markOf' })
    const letters = dao === undefined ? (token?.symbol ?? '') : toInitials(dao.name)
    return { body: Buffer.from(toMark(found.id, found.name, letters)), asOf: registry.changedAt }
  },
})
