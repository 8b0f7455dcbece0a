/** The target `slow`, which waits this long for each read and write of a workflow. */
export const slowTarget = (millis: number): string => `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: slow }
spec:
  className: targets.Plugin
  params:
    javaScript: |
      const users = new Map()
      const wait = () => new Promise((resolve) => setTimeout(resolve, ${millis}))
      async function findUser() { await wait(); return null }
      async function createUser(user) { await wait(); users.set(user.userID, user) }
      function syncUser() {}
      function deleteUser() {}
      function lookupUserByLogin(login) { return users.get(login) ?? null }
      function lookupUserById(id) { return users.get(id) ?? null }
      function searchUsers() { return [] }
      function lookupGroupByName() { return null }
      function lookupGroupById() { return null }
      function searchGroups() { return [] }
`
