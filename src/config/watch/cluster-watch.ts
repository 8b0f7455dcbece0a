import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { SecretSource } from '#config/context/secrets.ts'
import { buildConfiguration, type LoadOptions, type LoadResult } from '#config/load/load.ts'
import { readKeys, type SourceProblem, type Sources } from '#config/sources/folder-documents.ts'
import type { KnownObjects } from '#config/sources/stored-objects.ts'
import type { Clock } from '#kernel/clock.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { hideSecrets, SecretValues } from '#kernel/secret-values.ts'
import type { KubernetesConnection } from '#protocols/kubernetes/api-connection.ts'
import { Leadership } from '#protocols/kubernetes/leadership.ts'
import { ObjectClient } from '#protocols/kubernetes/object-client.ts'
import type { ConfigurationSource, LoadOutcome, SourceListener } from './configuration-source.ts'
import type { ConfigWatch } from './folder-watch.ts'
import { HeardObjects, type HeardOptions } from './heard-objects.ts'
import { KubernetesSecrets } from './kubernetes-secrets.ts'
import { ObjectStatusWriter } from './object-status-writer.ts'
import { QuietCall } from './quiet-call.ts'

type ReadOptions = Pick<
  LoadOptions,
  'catalog' | 'environment' | 'strictSecrets' | 'keepObjects' | 'ownPlaces' | 'listenUrl'
>

interface KubernetesSourceOptions extends ReadOptions, HeardOptions {
  readonly connection: KubernetesConnection
  /** The base of relative file names, and the parent of `keys/` and `secrets/`. */
  readonly folder: string
  readonly secretsFolder?: string | undefined
  /** Identifies this replica. */
  readonly identity: string
  readonly clock: Clock
}

const callMillis = 15_000
const secretsEveryMillis = 5_000
/** How long nothing must change before it is read, and the longest wait for that. */
const quietMillis = 200
const mostQuietMillis = 2_000
/**
 * The names of secrets are known only while objects are built, so objects are built again after secrets were
 * fetched.
 */
const mostRounds = 4

/** Throws an Error if the cluster can't be reached, or does not let the account list the objects. */
export async function openKubernetesSource(options: KubernetesSourceOptions): Promise<ConfigurationSource> {
  return (await buildScoped((scope) => open(options, scope))).value
}

async function open(options: KubernetesSourceOptions, scope: Scope): Promise<KubernetesSource> {
  const { namespace, clock, log, environment, identity } = options
  const who = `namespace ${namespace}`
  const objects = scope.own(
    await ObjectClient.open(options.connection, { who, timeoutMillis: options.answerMillis ?? callMillis }),
  )
  const heard = await HeardObjects.open(options, objects, scope)
  const secretObjects = new KubernetesSecrets(objects, namespace, log)
  const folder = resolve(options.folder)
  const secretsFolder = resolve(options.secretsFolder ?? join(folder, 'secrets'))
  const secretValues = new SecretValues()
  scope.defer(hideSecrets(secretValues))
  const stored: KnownObjects = { list: [] }
  const loading: LoadOptions = {
    folder,
    stored,
    secretValues,
    secretsFolder,
    clusterSecrets: secretObjects.lookUp,
    environment,
    catalog: options.catalog,
    strictSecrets: options.strictSecrets ?? true,
    keepObjects: options.keepObjects ?? false,
    ownPlaces: options.ownPlaces,
    listenUrl: options.listenUrl,
  }
  const statuses = new ObjectStatusWriter({ objects, kinds: heard.kinds, namespace, clock, log })
  const leadership = scope.own(
    new Leadership({
      objects,
      namespace,
      name: 'gatehouse',
      identity,
      clock,
      onGain: () => void statuses.write(),
      onError: (err) => log.warn('the lease could not be renewed: this replica writes no status', { err }),
    }),
  )
  statuses.mayWrite = () => leadership.isLeader

  const secrets = new SecretSource(secretsFolder, environment, secretValues, secretObjects.lookUp)
  return new KubernetesSource({ folder, stored, secrets, loading, heard, secretObjects, statuses, leadership, scope })
}

interface SourceParts {
  readonly folder: string
  readonly stored: KnownObjects
  readonly secrets: SecretSource
  readonly loading: LoadOptions
  readonly heard: HeardObjects
  readonly secretObjects: KubernetesSecrets
  readonly statuses: ObjectStatusWriter
  readonly leadership: Leadership
  /** Of all of them. */
  readonly scope: Scope
}

class KubernetesSource implements ConfigurationSource {
  readonly folder: string
  readonly stored: KnownObjects
  readonly secrets: SecretSource
  readonly #parts: SourceParts
  #isWatching = false
  #lastRead = ''

  constructor(parts: SourceParts) {
    this.folder = parts.folder
    this.stored = parts.stored
    this.secrets = parts.secrets
    this.#parts = parts
  }

  async load(): Promise<LoadResult> {
    await this.#parts.secretObjects.refresh()
    return this.#build(await this.#sources())
  }

  watch({ hash, onChange, onError }: SourceListener): ConfigWatch {
    const { heard, secretObjects, statuses, leadership } = this.#parts
    let lastHash = hash
    let secretsChanged = false
    const look = async (): Promise<void> => {
      const sources = await this.#sources()
      if (secretsChanged || fingerprint(sources) !== this.#lastRead) {
        const result = await this.#build(sources)
        secretsChanged = false
        if (result.hash === lastHash) statuses.repeat(result)
        else {
          lastHash = result.hash
          await onChange(result)
        }
      }
      await statuses.write()
    }
    const looking = new QuietCall(look, { quietMillis, mostQuietMillis, onError })
    heard.listen(() => looking.request())
    const timer = setInterval(() => {
      secretObjects.refresh().then((isChanged) => {
        secretsChanged ||= isChanged
        // Even without changes: a status that could not be written is retried.
        looking.request()
      }, onError)
    }, secretsEveryMillis)
    timer.unref()
    this.#isWatching = true
    leadership.start()
    looking.request()
    return {
      async close() {
        clearInterval(timer)
        heard.listen(() => {})
        await looking.close()
      },
    }
  }

  async settled(result: LoadResult, outcome: LoadOutcome): Promise<void> {
    const { statuses, leadership } = this.#parts
    statuses.settle(result, outcome)
    // Nothing is watched yet, so this is the only chance to report why the replica does not start.
    if (!this.#isWatching && outcome !== 'applied') await leadership.succeed()
    await statuses.write()
  }

  close(): Promise<void> {
    return this.#parts.scope.close()
  }

  async #sources(): Promise<Sources> {
    const { folder, heard } = this.#parts
    const problems: SourceProblem[] = []
    const keys = await readKeys(join(folder, 'keys'), problems)
    const read = heard.read()
    return { ...read, keys, problems: [...problems, ...read.problems] }
  }

  async #build(sources: Sources): Promise<LoadResult> {
    const { loading, secretObjects, statuses } = this.#parts
    const generations = statuses.generations()
    let result = buildConfiguration(sources, loading)
    for (let round = 1; round < mostRounds && (await secretObjects.fetchMissing()); round++) {
      result = buildConfiguration(sources, loading)
    }
    this.#lastRead = fingerprint(sources)
    statuses.remember(result, generations)
    return result
  }
}

const fingerprint = ({ files, keys, problems }: Sources): string =>
  createHash('sha256')
    .update(JSON.stringify([files, [...keys], problems]))
    .digest('base64url')
