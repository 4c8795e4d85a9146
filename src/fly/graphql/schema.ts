/** The schema of `/graphql`: the part of Fly's schema that its clients use and the platform supports. */
export const SCHEMA = /* GraphQL */ `
  scalar JSON
  scalar BigInt
  scalar ISO8601DateTime

  type Query {
    app(name: String, internalId: String): App
    apps(type: String, role: String, organizationId: ID, first: Int, after: String): AppConnection!
    appNameAvailable(name: String!): Boolean!
    canPerformBluegreenDeployment(name: String!): Boolean!
    machine(machineId: String!): Machine
    volume(id: ID!): Volume
    organization(id: ID, slug: String): Organization
    organizations(admin: Boolean, type: String): OrganizationConnection!
    personalOrganization: Organization
    viewer: Viewer!
    currentUser: User
    platform: PlatformInformation!
    nearestRegion: Region!
    latestImageTag(repository: String!, snapshotId: ID): String!
    latestImageDetails(image: String!, flyVersion: String): ImageVersion!
  }

  type Mutation {
    createApp(input: CreateAppInput!): AppPayload!
    deleteApp(appId: ID!): DeleteAppPayload!
    setSecrets(input: SetSecretsInput!): ReleasePayload!
    unsetSecrets(input: UnsetSecretsInput!): ReleasePayload!
    allocateIpAddress(input: AllocateIPAddressInput!): AddressPayload!
    releaseIpAddress(input: ReleaseIPAddressInput!): AddressPayload!
    addCertificate(appId: ID!, hostname: String!): CertificatePayload!
    checkCertificate(input: CheckCertificateInput!): CertificatePayload!
    deleteCertificate(appId: ID!, hostname: String!): CertificatePayload!
    createRelease(input: CreateReleaseInput!): ReleasePayload!
    updateRelease(input: UpdateReleaseInput!): ReleasePayload!
    createLimitedAccessToken(input: CreateLimitedAccessTokenInput!): LimitedAccessTokenPayload!
    deleteLimitedAccessToken(input: DeleteLimitedAccessTokenInput!): DeletedTokenPayload!
    createOrganization(input: CreateOrganizationInput!): OrganizationPayload!
    deleteOrganization(input: DeleteOrganizationInput!): DeleteOrganizationPayload!
    ensureMachineRemoteBuilder(input: EnsureMachineRemoteBuilderInput!): RemoteBuilderPayload!
    validateWireGuardPeers(input: ValidateWireGuardPeersInput!): WireGuardPayload!
    addWireGuardPeer(input: AddWireGuardPeerInput!): WireGuardPayload!
    logOut(input: LogOutInput!): LogOutPayload!
  }

  type PageInfo { hasNextPage: Boolean! endCursor: String }

  type Organization {
    id: ID!
    internalNumericId: BigInt!
    slug: String!
    rawSlug: String!
    name: String!
    type: String!
    paidPlan: Boolean!
    billable: Boolean!
    billingStatus: String!
    viewerRole: String!
    addOnSsoLink: String
    provisionsBetaExtensions: Boolean!
    remoteBuilderImage: String!
    remoteBuilderApp: App
    members: MemberConnection!
    apps: AppConnection!
    limitedAccessTokens: LimitedAccessTokenConnection!
    wireGuardPeers: NothingConnection!
    addOns(type: AddOnType): AddOnConnection!
  }
  type OrganizationConnection { nodes: [Organization!]! pageInfo: PageInfo! }
  type MemberConnection { edges: [MemberEdge!]! nodes: [User!]! }
  type MemberEdge { cursor: String! node: User! joinedAt: ISO8601DateTime role: String! }
  "Of things that the platform does not have: always empty."
  type NothingConnection { nodes: [JSON!]! }

  type AppService { description: String! protocol: String! internalPort: Int! ports: [AppPort!]! }
  type AppPort { port: Int! handlers: [String!]! }
  type EgressIPAddress { id: ID! ip: String! version: Int! region: String updatedAt: ISO8601DateTime }
  type EgressIPAddressConnection { nodes: [EgressIPAddress!]! }
  type HostIssue { internalId: String! message: String! createdAt: ISO8601DateTime! updatedAt: ISO8601DateTime! }
  type HostIssueConnection { nodes: [HostIssue!]! }
  enum AddOnType { redis upstash_redis tigris sentry kubernetes supabase }
  type AddOn {
    id: ID!
    name: String!
    addOnPlan: AddOnPlan
    privateIp: String
    primaryRegion: String
    readRegions: [String!]
    options: JSON
    metadata: JSON
  }
  type AddOnPlan { displayName: String description: String }
  type AddOnConnection { nodes: [AddOn!]! }

  type App {
    id: ID!
    internalNumericId: BigInt!
    name: String!
    hostname: String
    cnameTarget: String
    appUrl: String
    deployed: Boolean!
    status: String!
    state: String!
    network: String
    version: Int!
    createdAt: ISO8601DateTime!
    platformVersion: String!
    organization: Organization!
    role: AppRole
    config: AppConfig!
    regions: [Region!]!
    services: [AppService!]!
    secrets: [Secret!]!
    machines(active: Boolean, version: Int): MachineConnection!
    volumes: VolumeConnection!
    ipAddresses: IPAddressConnection!
    sharedIpAddress: String
    egressIpAddresses: EgressIPAddressConnection!
    certificates: CertificateConnection!
    certificate(hostname: String!): Certificate
    image(ref: String!): Image
    imageDetails: ImageVersion
    currentRelease: Release
    currentReleaseUnprocessed: Release
    releases(first: Int): ReleaseConnection!
    releasesUnprocessed(first: Int): ReleaseConnection!
    limitedAccessTokens: LimitedAccessTokenConnection!
    hostIssues: HostIssueConnection!
    addOns(type: AddOnType): AddOnConnection!
  }
  type AppConnection { nodes: [App!]! totalCount: Int! pageInfo: PageInfo! }
  type AppRole { name: String! }
  type AppConfig { definition: JSON! }
  type Secret { id: ID! name: String! digest: String! createdAt: ISO8601DateTime! }

  type Machine {
    id: ID!
    name: String!
    state: String!
    region: String!
    config: JSON!
    instanceId: String!
    createdAt: ISO8601DateTime!
    updatedAt: ISO8601DateTime!
    app: App!
    ips: MachineIPConnection!
    host: Host!
    egressIpAddresses: EgressIPAddressConnection!
  }
  type MachineConnection { nodes: [Machine!]! totalCount: Int! }
  type MachineIP { family: String! kind: String! ip: String! maskSize: Int! }
  type MachineIPConnection { nodes: [MachineIP!]! }
  type Host { id: ID! }

  type Volume {
    id: ID!
    name: String!
    state: String!
    region: String!
    sizeGb: Int!
    encrypted: Boolean!
    createdAt: ISO8601DateTime!
    app: App!
    snapshots: SnapshotConnection!
  }
  type VolumeConnection { nodes: [Volume!]! }
  type Snapshot {
    id: ID!
    size: BigInt!
    digest: String!
    status: String!
    createdAt: ISO8601DateTime!
    retentionDays: Int
  }
  type SnapshotConnection { nodes: [Snapshot!]! }

  type IPAddress {
    id: ID!
    address: String!
    type: String!
    region: String
    createdAt: ISO8601DateTime!
    network: Network
    serviceName: String
  }
  type IPAddressConnection { nodes: [IPAddress!]! }
  type Network { name: String! organization: Organization }

  type Certificate {
    id: ID!
    hostname: String!
    clientStatus: String!
    configured: Boolean!
    acmeDnsConfigured: Boolean!
    acmeAlpnConfigured: Boolean!
    certificateAuthority: String!
    dnsProvider: String!
    dnsValidationInstructions: String!
    dnsValidationHostname: String!
    dnsValidationTarget: String!
    source: String!
    isApex: Boolean!
    isWildcard: Boolean!
    createdAt: ISO8601DateTime!
    issued: IssuedConnection!
    validationErrors: [ValidationError!]!
  }
  type CertificateConnection { nodes: [Certificate!]! }
  type Issued { type: String! expiresAt: ISO8601DateTime! }
  type IssuedConnection { nodes: [Issued!]! }
  type ValidationError { errorCode: String message: String! remediation: String! timestamp: ISO8601DateTime! }
  type HostnameCheck {
    aRecords: [String!]!
    aaaaRecords: [String!]!
    cnameRecords: [String!]!
    soa: String
    dnsProvider: String
    dnsVerificationRecord: String
    resolvedAddresses: [String!]!
  }

  type Image {
    id: ID!
    ref: String!
    digest: String!
    compressedSize: BigInt!
    compressedSizeFull: BigInt!
    manifest: JSON
    config: JSON
    tag: String
  }
  type ImageVersion { registry: String! repository: String! tag: String! version: String digest: String! }
  type Release {
    id: ID!
    version: Int!
    status: String!
    stable: Boolean!
    inProgress: Boolean!
    reason: String!
    description: String!
    imageRef: String
    evaluationId: String
    user: User
    createdAt: ISO8601DateTime!
  }
  type ReleaseConnection { nodes: [Release!]! }

  type LimitedAccessToken {
    id: ID!
    name: String!
    token: String!
    tokenHeader: String
    createdAt: ISO8601DateTime!
    expiresAt: ISO8601DateTime!
    revokedAt: ISO8601DateTime
    user: User!
  }
  type LimitedAccessTokenConnection { nodes: [LimitedAccessToken!]! }

  union Viewer = User | Macaroon
  type User {
    id: ID!
    name: String
    email: String!
    enablePaidHobby: Boolean!
    agreedToProviderTos(providerName: String!): Boolean!
    personalOrganization: Organization
  }
  type Macaroon { email: String! }
  type PlatformInformation { requestRegion: String regions: [Region!]! }
  type Region {
    code: String!
    name: String!
    latitude: Float
    longitude: Float
    gatewayAvailable: Boolean!
    requiresPaidPlan: Boolean!
    deprecated: Boolean!
  }

  input CreateAppInput {
    organizationId: ID!
    name: String
    network: String
    machines: Boolean
    preferredRegion: String
    runtime: String
    appRoleId: ID
    heroku: Boolean
    enableSubdomains: Boolean
    clientMutationId: String
  }
  input SecretInput { key: String! value: String! }
  input SetSecretsInput { appId: ID! secrets: [SecretInput!]! replaceAll: Boolean clientMutationId: String }
  input UnsetSecretsInput { appId: ID! keys: [String!]! clientMutationId: String }
  input AllocateIPAddressInput {
    appId: ID!
    type: String!
    region: String
    organizationId: ID
    network: String
    serviceName: String
    clientMutationId: String
  }
  input ReleaseIPAddressInput { appId: ID ipAddressId: ID ip: String clientMutationId: String }
  input CheckCertificateInput { appId: ID! hostname: String! clientMutationId: String }
  input CreateReleaseInput {
    appId: ID!
    image: String!
    platformVersion: String
    strategy: String
    definition: JSON
    clientMutationId: String
  }
  input UpdateReleaseInput { releaseId: ID! status: String! clientMutationId: String }
  input CreateLimitedAccessTokenInput {
    name: String!
    organizationId: ID!
    profile: String!
    profileParams: JSON
    expiry: String
    clientMutationId: String
  }
  input DeleteLimitedAccessTokenInput { id: ID token: String clientMutationId: String }
  input CreateOrganizationInput { name: String! clientMutationId: String }
  input DeleteOrganizationInput { organizationId: ID! clientMutationId: String }

  input ValidateWireGuardPeersInput { peerIps: [String!]! clientMutationId: String }
  input AddWireGuardPeerInput { organizationId: ID! region: String name: String! pubkey: String! network: String nats: Boolean }
  input EnsureMachineRemoteBuilderInput { appName: String organizationId: ID region: String v2: Boolean }
  input LogOutInput { clientMutationId: String }

  "The payload of WireGuard mutations, which are refused with an error."
  type WireGuardPayload { invalidPeerIps: [String!] peerip: String endpointip: String pubkey: String }
  type AppPayload { app: App! clientMutationId: String }
  type DeleteAppPayload { organization: Organization! clientMutationId: String }
  type ReleasePayload { app: App release: Release clientMutationId: String }
  type AddressPayload { app: App! ipAddress: IPAddress clientMutationId: String }
  type CertificatePayload { app: App! certificate: Certificate check: HostnameCheck clientMutationId: String }
  type LimitedAccessTokenPayload { limitedAccessToken: LimitedAccessToken! clientMutationId: String }
  type DeletedTokenPayload { token: String clientMutationId: String }
  type OrganizationPayload { organization: Organization! clientMutationId: String }
  type DeleteOrganizationPayload { deletedOrganizationId: ID! clientMutationId: String }
  type RemoteBuilderPayload { app: App machine: Machine }
  type LogOutPayload { ok: Boolean! }
`;
