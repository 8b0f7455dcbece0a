import type { Adapter, AdapterPayload } from 'oidc-provider'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newSecret, secretHash } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { type IssuerAccount, type Person, presentCall, readAccount } from './issuer-account.ts'
import type { IssuerKey, IssuerStore, StoredIssuerRecord } from './issuer-store.ts'

export interface RecordParts {
  readonly issuer: string
  readonly store: IssuerStore
  readonly box: SecretBox
  readonly clock: Clock
  /** For how long a refresh token that was replaced is still accepted. */
  readonly graceMillis: number
  /** Whether our session of that id exists, and its owner too. */
  isLive(sessionId: string): Promise<boolean>
  /** The current account of our session of that id; undefined if it may not get anything any more. */
  present(sessionId: string, stored: IssuerAccount): Promise<IssuerAccount | undefined>
  /** The provider's response to a code or token that was used before. */
  alreadyUsed(): Error
}

/** For records without an expiry. */
const longestSeconds = 86_400
/** The maximum lifetime of the provider's part of a session. */
export const sessionSeconds = 12 * 60 * 60
const swapAttempts = 8
/** How many times a refresh token may be replaced within the grace of an older one. */
const mostSuccessors = 100

/** An ID token that can be exchanged for others: only while its session lasts. */
export interface KnownIdToken {
  readonly sessionId: string
  /** It was issued in exchange for another one. */
  readonly exchanged: boolean
}

interface Read {
  readonly payload: AdapterPayload
  readonly version: number
}

/** The provider's records in our storage: hashed ids, encrypted contents. Its sessions are ours. */
export class IssuerRecords {
  readonly #parts: RecordParts

  constructor(parts: RecordParts) {
    this.#parts = parts
  }

  adapter(model: string): Adapter {
    if (model === 'Session') return this.#sessions()
    return model === 'RefreshToken' ? this.#refreshTokens() : this.#others(model)
  }

  /** The user of the session's tokens; undefined if the session has ended, or the user may no longer use the issuer. */
  async accountOf(uid: string): Promise<IssuerAccount | undefined> {
    const stored = readAccount((await this.#read(sessionKey(this.#parts.issuer, uid)))?.payload['account'])
    return stored === undefined ? undefined : await this.#parts.present(uid, stored)
  }

  /** The provider's part of a session, with the applications it knows. */
  async writeSession(person: Person, payload: AdapterPayload, expiresIn = sessionSeconds): Promise<void> {
    const { sessionId: uid, account } = person
    for (let attempt = 0; attempt < swapAttempts; attempt++) {
      const present = await this.#read(sessionKey(this.#parts.issuer, uid))
      const known = present?.payload.accountId === account.sub ? present.payload.authorizations : undefined
      const merged = {
        ...payload,
        kind: 'Session',
        uid,
        accountId: account.sub,
        account,
        authorizations: { ...known, ...payload.authorizations },
      }
      if (await this.#write(sessionKey(this.#parts.issuer, uid), merged, expiresIn, present?.version ?? 0)) return
    }
    throw new GatewayError('CONFLICT', 'a session of an issuer is being changed by others')
  }

  /** The grant that the application already has in that session. */
  async sessionGrant(uid: string, clientId: string, account: IssuerAccount): Promise<string | undefined> {
    const present = (await this.#read(sessionKey(this.#parts.issuer, uid)))?.payload
    return present?.accountId === account.sub ? present.authorizations?.[clientId]?.grantId : undefined
  }

  /** Gives an access token another value. */
  async renameAccessToken(from: string, to: string): Promise<void> {
    const adapter = this.#others('AccessToken')
    const payload = await adapter.find(from)
    if (!payload) throw new GatewayError('INTERNAL', 'an access token that was just issued is not there')
    const seconds = (payload.exp ?? 0) - Math.floor(this.#parts.clock().getTime() / 1000)
    await adapter.upsert(to, { ...payload, jti: to }, seconds)
    await adapter.destroy(from)
  }

  /** For as long as the token is valid. */
  async rememberIdToken(jti: string, { sessionId, exchanged }: KnownIdToken, seconds: number): Promise<void> {
    await this.#write(idTokenKey(this.#parts.issuer, jti), { sessionUid: sessionId, exchanged }, seconds)
  }

  async idToken(jti: string): Promise<KnownIdToken | undefined> {
    const found = (await this.#read(idTokenKey(this.#parts.issuer, jti)))?.payload
    if (found?.sessionUid === undefined) return undefined
    return { sessionId: found.sessionUid, exchanged: found['exchanged'] !== false }
  }

  #others(model: string): Adapter {
    const { issuer, store, clock, alreadyUsed } = this.#parts
    const keyOf = (id: string): IssuerKey => ({ issuer, model, id: secretHash(id) })
    return {
      upsert: async (id, payload, expiresIn) => {
        if (model === 'DeviceCode') await this.#writeDeviceCode(keyOf(id), payload, expiresIn)
        else await this.#write(keyOf(id), payload, expiresIn)
      },
      find: async (id) => (await this.#read(keyOf(id)))?.payload,
      findByUid: async () => undefined,
      findByUserCode: async (code) => {
        const userCode = secretHash(code)
        return (await this.#open(await store.findByUserCode({ issuer, model, userCode }, clock())))?.payload
      },
      consume: async (id) => {
        if (!(await store.consume(keyOf(id), clock()))) throw alreadyUsed()
      },
      destroy: (id) => store.delete(keyOf(id)),
      revokeByGrantId: async (grantId) =>
        void (await store.deleteOfGrant({ issuer, model, grantId: secretHash(grantId) })),
    }
  }

  /**
   * A token that was just replaced counts as unused for the token endpoint, which returns its successor. A request that
   * finds none stores it: the one that replaced the token may have failed, or be about to.
   */
  #refreshTokens(): Adapter {
    const { issuer, store, box, clock, graceMillis, alreadyUsed } = this.#parts
    const adapter = this.#others('RefreshToken')
    if (graceMillis === 0) return adapter
    const keyOf = (id: string): IssuerKey => ({ issuer, model: 'RefreshToken', id: secretHash(id) })
    return {
      ...adapter,
      upsert: async (id, payload, expiresIn) => {
        // Another request may have stored it, and it may have been used since.
        const version = id === presentCall()?.successor ? 0 : undefined
        await this.#write(keyOf(id), payload, expiresIn, version)
      },
      find: async (id) => {
        const record = await store.find(keyOf(id), clock())
        const payload = (await this.#open(record))?.payload
        const call = presentCall()
        if (record?.consumed === undefined || call?.exchange.pathInfo !== '/token') return payload
        const successor = payload?.['successor']
        const age = clock().getTime() - record.consumed.getTime()
        if (age > graceMillis || typeof successor !== 'string') return payload
        const { id: last, isStored } = await this.#lastSuccessor(successor, keyOf)
        call.replacedBy = last
        if (!isStored) call.successor = last
        const { consumed: _, ...unused } = payload ?? {}
        return unused
      },
      consume: async (id) => {
        const call = presentCall()
        if (call?.replacedBy !== undefined) return
        const present = await this.#read(keyOf(id))
        const successor = newSecret()
        const payload: AdapterPayload = { ...present?.payload, successor }
        const data = await box.seal(payload as JsonObject, ownerOf(keyOf(id)))
        if (await store.consume(keyOf(id), clock(), data)) {
          if (call !== undefined) call.successor = successor
          return
        }
        if (call !== undefined) call.raced = true
        throw alreadyUsed()
      },
    }
  }

  /** The one that was not replaced yet. */
  async #lastSuccessor(
    first: string,
    keyOf: (id: string) => IssuerKey,
  ): Promise<{ readonly id: string; readonly isStored: boolean }> {
    let last = first
    for (let i = 0; i < mostSuccessors; i++) {
      const found = await this.#read(keyOf(last))
      const next = found?.payload['successor']
      if (typeof next !== 'string') return { id: last, isStored: found !== undefined }
      last = next
    }
    throw this.#parts.alreadyUsed()
  }

  /** Only one user decides about a device: concurrent decisions of others fail. */
  async #writeDeviceCode(key: IssuerKey, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    const present = await this.#read(key)
    const isTaken =
      isDecided(present?.payload) ||
      (present?.payload['inFlight'] === true && payload['inFlight'] === true && !isDecided(payload))
    if (isTaken || !(await this.#write(key, payload, expiresIn, present?.version ?? 0))) throw this.#parts.alreadyUsed()
  }

  /** Exists exactly while ours exists; the provider's own cookie does not exist. */
  #sessions(): Adapter {
    return {
      upsert: async (_id, payload, expiresIn) => {
        const person = presentCall()?.person
        // A session without a user could not be found again.
        if (person !== undefined) await this.writeSession(person, payload, expiresIn)
      },
      find: async () => {
        const person = presentCall()?.person
        return person === undefined ? undefined : await this.#sessionOf(person)
      },
      findByUid: (uid) => this.#liveSession(uid),
      findByUserCode: async () => undefined,
      consume: async () => {},
      destroy: async () => {},
      revokeByGrantId: async () => {},
    }
  }

  async #sessionOf({ sessionId: uid, account, authenticated }: Person): Promise<AdapterPayload> {
    const present = (await this.#read(sessionKey(this.#parts.issuer, uid)))?.payload
    const known = present?.accountId === account.sub ? present : undefined
    const now = Math.floor(this.#parts.clock().getTime() / 1000)
    return {
      ...known,
      kind: 'Session',
      jti: known?.jti ?? uid,
      uid,
      accountId: account.sub,
      loginTs: Math.floor(authenticated.getTime() / 1000),
      iat: known?.iat ?? now,
      exp: now + sessionSeconds,
    }
  }

  async #liveSession(uid: string): Promise<AdapterPayload | undefined> {
    if (!(await this.#parts.isLive(uid))) return undefined
    return (await this.#read(sessionKey(this.#parts.issuer, uid)))?.payload
  }

  async #write(key: IssuerKey, payload: AdapterPayload, expiresIn?: number, version?: number): Promise<boolean> {
    const { store, box, clock } = this.#parts
    const now = clock()
    const { grantId, userCode } = payload
    const record = {
      ...key,
      ...(grantId === undefined ? {} : { grantId: secretHash(grantId) }),
      ...(userCode === undefined ? {} : { userCode: secretHash(userCode) }),
      data: await box.seal(payload as JsonObject, ownerOf(key)),
      expires: new Date(now.getTime() + (expiresIn ?? longestSeconds) * 1000),
    }
    return await store.put(record, version === undefined ? undefined : { version, now })
  }

  async #read(key: IssuerKey): Promise<Read | undefined> {
    return this.#open(await this.#parts.store.find(key, this.#parts.clock()))
  }

  async #open(record: StoredIssuerRecord | undefined): Promise<Read | undefined> {
    if (record === undefined) return undefined
    const payload: AdapterPayload = await this.#parts.box.open(record.data, ownerOf(record))
    const consumed = record.consumed === undefined ? {} : { consumed: Math.floor(record.consumed.getTime() / 1000) }
    return { payload: { ...payload, ...consumed }, version: record.version }
  }
}

const isDecided = (code: AdapterPayload | undefined): boolean =>
  code?.accountId !== undefined || code?.['error'] !== undefined

const sessionKey = (issuer: string, uid: string): IssuerKey => ({ issuer, model: 'Session', id: secretHash(uid) })

const idTokenKey = (issuer: string, jti: string): IssuerKey => ({ issuer, model: 'IdToken', id: secretHash(jti) })

/** Unique for each record. */
const ownerOf = ({ issuer, model, id }: IssuerKey): string => JSON.stringify([issuer, model, id])
