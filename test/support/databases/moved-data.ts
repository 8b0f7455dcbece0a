import process from 'node:process'
import { connect, readAddress } from '#database/databases.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { SecretBox } from '#keys/secret-box.ts'
import { loadSecretKeys } from '#keys/secret-keys.ts'
import { openStorage } from '#server/composition/stores.ts'
import { changeMemberGroups, createGroup, createUser, user } from '#testing/databases/directory-writes.ts'
import { auditRow, newRun } from '#testing/databases/workflow-stores.ts'

/** Some of everything that an export moves, sealed with GATEHOUSE_SECRET_KEY. */
export async function fillMoved(url: string): Promise<void> {
  const source = { environment: process.env, dataFolder: '' }
  const auditKeys = await loadAuditKeys(source, 'command')
  const box = new SecretBox(() => loadSecretKeys(source))
  const storage = openStorage({ url, clock: systemClock, log: silentLogger, auditKeys })
  await storage.ready()
  await storage.audit.authenticate()
  const people = storage.userDirectory({ name: 'people' })
  const inner = await createGroup(people, 'Inner', { gidNumber: ['123456789012345678'] })
  await createGroup(people, 'Müller & "Söhne"')
  await changeMemberGroups(people, 'Müller & "Söhne"', { add: [{ id: inner.id, name: inner.name }], remove: [] })
  for (const login of ['Ada', 'bob', '0042', 'straße']) {
    await createUser(
      people,
      user(
        login,
        {
          mail: [`${login}@example.com`, 'Ü\u2028'],
          note: ['x'.repeat(3_000)],
          title: ['g1.AAAAAAAAAAAA.not a secret'],
        },
        ['inner'],
      ),
    )
  }
  await people.close()
  await storage.grants.add([
    { id: 'g1', target: 'people', subject: 'Ada', kind: 'group', name: 'Inner', expires: { inMillis: 1e9 } },
    { id: 'g2', target: 'people', subject: 'bob', kind: 'group', name: 'Inner', expires: { inMillis: 1e9 }, run: 'r1' },
    // The same access, by a later run.
    { id: 'g3', target: 'people', subject: 'bob', kind: 'group', name: 'Inner', expires: { inMillis: 1e9 }, run: 'r2' },
  ])
  await storage.secondFactors.add(
    {
      id: 'f1',
      owner: 'ada',
      ownerName: 'Ada',
      kind: 'totp',
      name: 'Phone',
      data: await box.seal({ s: 1 }, 'f1'),
      counter: 7,
    },
    5,
    ['hash of a code'],
    [],
  )
  await storage.keys.swap('aws', 0, { keys: [await box.seal({ private: 'x' }, 'aws')] })
  const ended = { state: { state: 'completed' } } as const
  for (const id of ['r1', 'r2']) await storage.runs.start(newRun(id, ended))
  for (let i = 0; i < 30; i++) await storage.audit.append([auditRow(`row-${i}`, { reason: `é ${i}` })])
  const token = {
    kind: 'token',
    action: 'issue',
    attribute: 'jti',
    target: 'aws',
    reason: 'pod a; on node b',
    recurring: 6,
  } as const
  for (let i = 0; i < 3; i++) {
    const id = `token-${i}`
    await storage.audit.append([
      auditRow(id, {
        ...token,
        value: id,
        requestor: 'sa',
        subject: 'sa',
        workflow: { id, name: 'token' },
        requestId: id,
      }),
    ])
  }
  await storage.close()
  const { dialect, address } = readAddress(url)
  const client = await connect(dialect, address, silentLogger, undefined)
  await client.migrate((_, runScript) => runScript(others))
  await client.close()
}

/** What no store writes without all that leads to it. */
const others = `
  insert into definitions (hash, name, body, created) select definition, 'join', '{"steps":[]}', 1 from runs where id = 'r1';
  insert into approvals (id, run, step, label, state, opened, decided, decided_by, decided_identity, comment, allow_self,
      comment_required, access_ends, new_account, rules, data, escalation, version)
    values ('a1', 'r1', 1, 'Manager', 'approved', 1, 2, 'Grace', 'grace', 'fine; ''quoted''', 0, 1, 9000000000000, 1, '[]', '{}', 1, 2);
  insert into approval_approvers (approval, approver_key, approver, open) values ('a1', 'grace', 'Grace', 0);
  insert into request_messages (run, id, kind, author, author_identity, at, body)
    values ('r1', 'm1', 'question', 'Grace', 'grace', 1, 'Why?');
  insert into steps (run, number, attempt, task, task_type, label, started, ended, outcome)
    values ('r1', 1, 1, 'join:1', 'provision', 'Provision', 1, 2, 'done');
  insert into delegations (id, login, login_key, deputy, deputy_key, starts, ends)
    values ('d1', 'Grace', 'grace', 'Ada', 'ada', 1, 9000000000000);
  insert into scim_tokens (id, client, name, hash, created, created_by, expires, revoked, revoked_by, last_used)
    values ('t1', 'okta', 'default', 'hash of t1', 1, 'Grace', 9000000000000, null, null, 2),
      ('t2', 'okta', 'default', 'hash of t2', 1, null, null, 3, 'Grace', null);
  insert into scim_tenants (name, host, path, profile, version, created, created_by, disabled, disabled_by)
    values ('acme', 'idm.example.com', '/tenants/acme/scim', 'okta', 2, 1, 'Grace', 3, 'Ada'),
      ('zenith', 'idm.example.com', '/scim/zenith', 'tolerant', 1, 2, 'Grace', null, null);
  insert into portal_marks (login_key, list, kind, name, at) values ('ada', 'favorites', 'url', 'vault', 3);
  insert into notification_settings (user_key, choices, language, digest) values ('ada', '{"opened":["daily",1,null]}', 'de', 1);
  insert into digest_entries (user_key, entry, at) values ('ada', 'approval a1', 4);
  insert into invitations (id, form, token_hash, email, attributes, invited_by, state, created, expires, sent)
    values ('i1', 'guests', 'hash', 'eve@example.com', '{}', 'Ada', 'open', 1, 9000000000000, 1);
  insert into reconciliation_links (reconciliation, source, target, decided, decided_by, reason)
    values ('chat', '42', 'U7', 5, 'Grace', 'the same person'), ('chat', '43', null, 6, 'Grace', null);
  insert into audit_sinks (name, configured, positions, owner, lease_until, failures, retry_at)
    values ('siem', 1, '{"0":12}', '', 0, 0, 0);
`
