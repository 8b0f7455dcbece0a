import type { ConfigDocument } from '#config/config-document.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { ReferenceKind } from '#sdk/module/parse-context.ts'

/** One place that names another object. */
export interface Reference {
  readonly kind: ReferenceKind
  readonly name: string
  readonly path: Path
  readonly document: ConfigDocument
  readonly absent: 'error' | 'warning'
}

/** Names that exist, by kind. */
export type KnownNames = ReadonlyMap<ReferenceKind, ReadonlySet<string>>

const nothing: ReadonlySet<string> = new Set()

/** Files an issue for every reference to nothing. */
export function checkReferences(references: readonly Reference[], known: KnownNames, issues: Issues): void {
  for (const { kind, name, path, document, absent } of references) {
    const names = known.get(kind) ?? nothing
    if (names.has(name)) continue
    const hint = kind === 'trust of an identity provider' ? '' : suggestion(name, names)
    const message = `${absence(kind, name)}${hint}`
    if (absent === 'error') issues.for(document).error(path, message)
    else issues.for(document).warning(path, message)
  }
}

function absence(kind: ReferenceKind, name: string): string {
  if (kind === 'key')
    return `no key "${name}": no keys/${name}.pem, .crt or .key in the configuration folder, no secret ${name} with a tls.crt`
  if (kind === 'notifier' && name === '')
    return 'no Notifier is the default one, so its mails stay queued: configure one, or call one of several "default"'
  if (kind === 'org') return `no org with the uuid "${name}"`
  if (kind === 'trust of an identity provider') {
    const space = name.indexOf(' ')
    return `the identity provider "${name.slice(0, space)}" has no trust "${name.slice(space + 1)}"`
  }
  return `no ${kind} named "${name}"`
}
