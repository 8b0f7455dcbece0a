import { Readable } from 'node:stream'
import type { JsonValue } from '#kernel/json.ts'
import type { Member } from './lookups.ts'

/**
 * The JSON text of a group and, as its last attribute, the members, which are read when the reader of the stream has
 * taken those before. Reading stops when the stream is destroyed. A failure ends the stream early, so that the client
 * does not take a part for the whole.
 */
export function withMembers(
  group: string,
  pages: AsyncIterable<readonly Member[]>,
  elements: (members: readonly Member[]) => JsonValue,
): Readable {
  return Readable.from(pieces(group, pages, elements), { objectMode: false })
}

async function* pieces(
  group: string,
  pages: AsyncIterable<readonly Member[]>,
  elements: (members: readonly Member[]) => JsonValue,
): AsyncGenerator<string> {
  yield `${group.trimEnd().slice(0, -1)},"members":[`
  let separator = ''
  for await (const page of pages) {
    if (page.length === 0) continue
    yield separator + JSON.stringify(elements(page)).slice(1, -1)
    separator = ','
  }
  yield ']}\n'
}
