import { FixedPlace } from '#config/context/config-document.ts'
import type { Issues } from '#kernel/issues.ts'
import type { SourceFile } from './folder-documents.ts'
import { type ParsedFiles, parseFiles } from './parse.ts'

/** Objects that are stored in the database; those of one owner are served together or not at all. */
export interface StoredObjects {
  /** Such as `tenant/acme`. */
  readonly owner: string
  /** Each has one object. */
  readonly files: readonly { readonly kind: string; readonly name: string; readonly file: SourceFile }[]
}

/** What a process knows of them. After a change, the configuration has to be loaded again. */
export interface KnownObjects {
  list: readonly StoredObjects[]
}

const scheme = 'stored:'

/** The place of an owner or an object in problems. */
export const storedPlace = (owner: string, object?: string): string =>
  object === undefined ? `${scheme}${owner}` : `${scheme}${owner}/${object}`

export const isStored = (file: string): boolean => file.startsWith(scheme)

/** Adds the objects of each owner, unless one of them has the name of another object, which wins. */
export function withStored(parsed: ParsedFiles, stored: readonly StoredObjects[], issues: Issues): ParsedFiles {
  if (stored.length === 0) return parsed
  const taken = new Map(parsed.objects.map((object) => [`${object.kind.kind}/${object.name}`, object]))
  const added = stored.flatMap(({ owner, files }) => {
    const rival = files.map(({ kind, name }) => taken.get(`${kind}/${name}`)).find((found) => found !== undefined)
    if (rival === undefined)
      return parseFiles(
        files.map(({ file }) => file),
        issues,
      ).objects
    const { kind, name, document } = rival
    const place = document.at(['metadata', 'name'])
    const message = `${kind.kind} "${name}" is in the configuration too (${place}), which wins: ${owner} is not served`
    issues.for(new FixedPlace(storedPlace(owner), undefined, false)).warning([], message)
    return []
  })
  return { ...parsed, objects: [...parsed.objects, ...added] }
}
