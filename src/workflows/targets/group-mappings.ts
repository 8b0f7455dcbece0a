import type * as z from 'zod'
import { groupMetaDataSchema, mappingsOf, namespaceGroupMetaDataSchema } from '#config/kinds/provisioning.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { GroupMapping, GroupMappings, GroupSource } from '#sdk/target/group-mappings.ts'
import { objectsOf } from '#sdk/target/kubernetes-cluster.ts'
import type { TargetSource } from '#sdk/target/target.ts'

interface MappingParts {
  /** Those of the configuration. */
  readonly mappings: readonly GroupMapping[]
  readonly sources: readonly GroupSource[]
  readonly targets: TargetSource
  readonly clock: Clock
  readonly log: Logger
}

const freshMillis = 5_000
const maxObjects = 10_000
const group = 'openunison.tremolo.io'

const schemas = { GroupMetaData: groupMetaDataSchema, NamespaceGroupMetaData: namespaceGroupMetaDataSchema }

/** The mappings of the configuration, and of clusters, whose objects workflows create. */
export class KnownGroupMappings implements GroupMappings {
  readonly #parts: MappingParts
  #known: { readonly mappings: readonly GroupMapping[]; readonly at: number } | undefined
  #loading: Promise<readonly GroupMapping[]> | undefined

  constructor(parts: MappingParts) {
    this.#parts = parts
  }

  async list(): Promise<readonly GroupMapping[]> {
    const { mappings, sources, clock } = this.#parts
    if (sources.length === 0) return mappings
    if (this.#known !== undefined && clock().getTime() - this.#known.at < freshMillis) return this.#known.mappings
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #load(): Promise<readonly GroupMapping[]> {
    const at = this.#parts.clock().getTime()
    const mappings = [...this.#parts.mappings]
    for (const source of this.#parts.sources) {
      for (const kind of ['GroupMetaData', 'NamespaceGroupMetaData'] as const) {
        mappings.push(...(await this.#read(source, kind)))
      }
    }
    this.#known = { mappings, at }
    return mappings
  }

  /** A cluster without the kind has no such objects. */
  async #read({ target, namespace }: GroupSource, kind: keyof typeof schemas): Promise<GroupMapping[]> {
    const { targets, log } = this.#parts
    const objects = objectsOf(targets, target)
    if ((await objects.servedKind(`${group}/v1`, kind)) === undefined) return []
    const resource = { group, version: 'v1', plural: `${kind.toLowerCase()}s`, namespace }
    const schema: z.ZodType<Parameters<typeof mappingsOf>[0]> = schemas[kind]
    return (await objects.list(resource, maxObjects)).flatMap(({ metadata, content }) => {
      const read = schema.safeParse(content['spec'])
      if (read.success) return mappingsOf(read.data)
      log.warn('a group mapping is not valid and is left out', { kind, namespace, name: metadata.name })
      return []
    })
  }
}
