import type { LIST_HEADERS } from '../http/headers.ts'
import type { Representation } from '../records/representation.ts'

/** What a list answer says of itself in its headers. */
export function toListHead(
  { total, next }: { total: number; next: string },
  representation: Representation,
): { headers: Record<string, string> & Record<keyof typeof LIST_HEADERS, string> } {
  const { format } = representation
  return {
    headers: {
      'X-Total-Count': String(total),
      ...(next === '' ? {} : { Link: representation.nextLink(next) }),
      ...(format === 'json' ? {} : { 'Content-Disposition': `attachment; filename="${representation.toFileName()}"` }),
    },
  }
}
