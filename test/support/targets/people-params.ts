import type { ParamValues } from '#testing/modules/fake-parse.ts'

const person = {
  'user.userID': '$.login',
  'user.attribute.mail': "$.mails[?@.kind == 'work'].address",
  'user.attribute.displayName': '$.name',
  'user.attribute.phone': '$.phone',
  findUser: 'GET /people/{userID}',
  createUser: 'POST /people',
  updateUser: 'PUT /people/{userID}',
  deleteUser: 'DELETE /people/{userID}',
  timeoutMillis: '3000',
} satisfies ParamValues

const body = (more: string) =>
  `{"login": "{userID}", "name": "{displayName}", "phone": "{phone}",
    "mails": [{"kind": "work", "address": "{mail*}"}, {"kind": "none", "address": "-"}]${more}}`

/** Configurations for `PeopleApi`, without its address. */
export const peopleParams = {
  whole: {
    ...person,
    'user.groups': '$.units',
    'createUser.body': body(', "units": "{groups*}"'),
    'updateUser.body': body(', "units": "{groups*}"'),
    'group.name': '$.name',
    'group.members': '$.who[*]',
    findGroup: 'GET /units/{group}',
    searchUsers: 'GET /people?size={limit}&after={cursor}',
    'searchUsers.items': '$.people[*]',
    'searchUsers.next': '$.more',
    searchGroups: 'GET /units?page={page}&size={limit}',
    firstPage: '0',
    pageSize: '2',
  },
  units: {
    ...person,
    'createUser.body': body(''),
    'updateUser.body': body(''),
    userGroups: 'GET /people/{userID}/units',
    'userGroups.items': '$[*].name',
    addMember: 'POST /units/{group}/who',
    'addMember.body': '{"who": "{userID}"}',
    removeMember: 'DELETE /units/{group}/who/{userID}',
  },
} satisfies Readonly<Record<string, ParamValues>>
