import type { KeyObject } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import type { PublishDestination, TokenIssuer } from '#config/configuration/token-keys.ts'
import type { SecretSource } from '#config/context/secrets.ts'
import { KeyKeeper, type KeyMeter } from '#features/sts/publish/key-keeper.ts'
import { configMapPublisher, folderPublisher, type Publisher, s3Publisher } from '#features/sts/publish/publishers.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { processName } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { KeyStore } from '#keys/key-store.ts'
import { readPrivateKey, readPrivateKeyFile } from '#keys/private-key-file.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { loadSecretKeys } from '#keys/secret-keys.ts'
import { keyOwners } from '#keys/token-key-pair.ts'
import { TokenKeyRings } from '#keys/token-key-rings.ts'
import { TransitCustodian } from '#keys/transit-custodian.ts'
import { isKeyName, type TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import { TransitClient, type TransitOptions } from '#protocols/transit/transit-client.ts'
import { type ClusterObjects, isCluster } from '#sdk/target/kubernetes-cluster.ts'
import type { Target } from '#sdk/target/target.ts'
import { protectGivenKey } from './private-files.ts'

export interface TokenKeyPlaces {
  /** Counts the calls of services that store keys. */
  readonly measureCustody?: TransitOptions['measure'] | undefined
  readonly store: KeyStore
  /** Logs and audits the life of every key. */
  readonly audit: Pick<AuditStore, 'append'>
  /** Its `keys/` may have private keys of endpoints. */
  readonly configFolder: string
  readonly dataFolder: string
  /** A secret with the name of a key pair may have it as `tls.key`. */
  readonly secrets: SecretSource | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
}

/** Encrypts what is stored with the keys of endpoints. */
export const createKeyBox = ({
  environment,
  dataFolder,
}: Pick<TokenKeyPlaces, 'environment' | 'dataFolder'>): SecretBox =>
  new SecretBox(() => loadSecretKeys({ environment, dataFolder }), keyOwners)

/** The keys of token endpoints in the database, encrypted with the installation's secret key. */
export function createTokenKeys({ store, audit, clock, log, ...places }: TokenKeyPlaces): TokenKeyRings {
  const { configFolder, dataFolder, secrets, environment } = places
  const seen = new Set<string>()
  const protectOnce = (file: string): void => {
    if (!seen.has(file)) protectGivenKey(file, { log })
    seen.add(file)
  }
  return new TokenKeyRings({
    store,
    audit,
    box: createKeyBox({ environment, dataFolder }),
    clock,
    log,
    custodian: custodians(places.measureCustody, clock),
    givenKey: async (name, algorithm) =>
      (await readPrivateKeyFile(join(configFolder, 'keys'), name, algorithm, protectOnce)) ??
      privateKeyIn(secrets, name, algorithm),
  })
}

const mostClients = 64

/** One client for each service and login, which all endpoints and configurations share. */
function custodians(
  measure: TransitOptions['measure'],
  clock: Clock,
): (issuer: TokenIssuer) => TransitCustodian | undefined {
  const clients = new Map<string, TransitClient>()
  return ({ custody }) => {
    if (custody === undefined) return undefined
    const { address, namespace, ca, login, mount, key } = custody
    const name = JSON.stringify([address, namespace, ca, login])
    let client = clients.get(name)
    if (client === undefined) {
      const [oldest] = clients.keys()
      if (clients.size >= mostClients && oldest !== undefined) clients.delete(oldest)
      client = new TransitClient({ address, namespace, ca, login }, { clock, ...(measure && { measure }) })
      clients.set(name, client)
    }
    return new TransitCustodian(client, mount, key)
  }
}

function privateKeyIn(
  secrets: SecretSource | undefined,
  name: string,
  algorithm: TokenAlgorithm,
): KeyObject | undefined {
  const answer = secrets?.read(name, 'tls.key')
  if (answer === undefined) return undefined
  if ('problem' in answer) {
    if (answer.absent || !isKeyName(name)) return undefined
    throw new GatewayError('INTERNAL', answer.problem)
  }
  return readPrivateKey(answer.value, `tls.key of the secret ${name}`, algorithm)
}

interface KeeperPlaces extends Pick<TokenKeyPlaces, 'store' | 'dataFolder' | 'clock' | 'log'> {
  readonly rings: TokenKeyRings
  readonly meter: KeyMeter
  /** Works on a target of the running configuration. */
  useTarget<T>(name: string, work: (target: Target) => Promise<T>): Promise<T>
}

export function createKeyKeeper({ rings, store, clock, log, meter, dataFolder, useTarget }: KeeperPlaces): KeyKeeper {
  const open = (destination: PublishDestination): Publisher => {
    switch (destination.type) {
      case 'folder':
        return folderPublisher(resolve(dataFolder, destination.folder))
      case 's3':
        return s3Publisher(destination)
      case 'configmap':
        return {
          put: (files, signal) =>
            useTarget(destination.target, (target) =>
              configMapPublisher(destination, objectsOf(target, destination.target)).put(files, signal),
            ),
        }
    }
  }
  return new KeyKeeper({ rings, store, worker: processName(), clock, log, meter, open })
}

/** Throws NOT_SUPPORTED for a target that is not a cluster. */
export function objectsOf(target: Target, name: string): ClusterObjects {
  if (isCluster(target)) return target.objects
  throw new GatewayError('NOT_SUPPORTED', `target "${name}" is not a Kubernetes cluster that objects can be written to`)
}

/** The owners of keys: the token service, and our own issuers. */
export const keyIssuers = ({
  stsEndpoints,
  issuers,
}: Pick<Configuration, 'stsEndpoints' | 'issuers'>): TokenIssuer[] => [
  ...stsEndpoints.map(({ issuer }) => issuer),
  ...issuers.map(({ keys }) => keys),
]
