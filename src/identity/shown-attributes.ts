import { isSecretName } from '#kernel/text/redaction.ts'
import type { Attributes } from './attributes.ts'
import type { DirectoryEntry } from './directory.ts'

/** The attributes that a subject takes from an entry: passwords that a system shows stay out of sessions. */
export function shownAttributes({ attributes: all }: Pick<DirectoryEntry, 'attributes'>): Attributes {
  const attributes = all.clone()
  for (const name of [...attributes.names()]) if (isSecretName(name)) attributes.set(name, [])
  return attributes
}
