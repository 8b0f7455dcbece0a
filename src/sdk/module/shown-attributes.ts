import type { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { isSecretName } from '#kernel/text/redaction.ts'

/** The attributes that a subject takes from an entry: passwords that a system shows stay out of sessions. */
export function shownAttributes({ attributes: all }: Pick<DirectoryEntry, 'attributes'>): Attributes {
  const attributes = all.clone()
  for (const name of [...attributes.names()]) if (isSecretName(name)) attributes.set(name, [])
  return attributes
}
