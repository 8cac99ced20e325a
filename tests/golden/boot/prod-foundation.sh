#!/bin/bash
# gputier, stage 0: files, one unit, and go. It may run at every boot; docs/boot.md explains it.
set -euo pipefail
umask 022
export LC_ALL=C
trap 'echo "gputier: stage 0 failed in line $LINENO" | tee /dev/console >&2 || true' ERR

verb=start
put() { # put PATH MODE [FILTER]: stdin becomes that file, whole or not at all
  mkdir -p "${1%/*}"
  "${3:-cat}" > "$1.new"
  cmp -s "$1.new" "$1" || verb=restart # an image of a used machine began with that one's files
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}
unpack() { # bzip2 in base 85, by Python: not every image has bzip2
  python3 -c 'import base64,bz2,sys
sys.stdout.buffer.write(bz2.decompress(base64.b85decode("".join(sys.stdin.read().split()))))'
}

put /etc/gputier/expect.json 0644 <<'EOF'
{"cuda":{"min":"11.8"},
"depth":"burn-in",
"driver":{"min":"580"},
"fabric":{"interfaces":16,"kind":"efa"},
"framework":{"cuda":"13.0","index":"https://download.pytorch.org/whl/cu130","name":"pytorch","version":"2.12"},
"gate":"enforce",
"gpu":{"count":8,"model":"H200-141GB","nvlinks":18},
"host":{"memory_gib":2048.0,"vcpus":192},
"machine":{"cloud":"aws","instance_type":"p5en.48xlarge"},
"scratch":{"count":8,"gib":28312.2,"mount":"/scratch"}}
EOF

put /etc/gputier/boot.json 0644 <<'EOF'
{"before_stop":"pkill -USR1 --full train.py && sleep 90",
"breaker":{"after":2,"window_seconds":86400},
"bundle":{"delivery":"object","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"0.1.0"},
"cloud":"aws",
"driver":{"branch":"595","fabric_manager":true,"module":"open","source":"prebaked"},
"fabric":{"interfaces":16,"kind":"efa"},
"framework":{"cuda":"13.0","index":"https://download.pytorch.org/whl/cu130","name":"pytorch","version":"2.12"},
"gate":{"deadline_seconds":7200,"depth":"standard","group":"gputier-prod-foundation","hook":"gputier-prod-foundation-prove","kind":"lifecycle-hook","mode":"enforce"},
"instance_type":"p5en.48xlarge",
"limits":{"bundle":300},
"metrics":{"agent":"cloudwatch","config":{"agent":{"metrics_collection_interval":60},"metrics":{"aggregation_dimensions":[["AutoScalingGroupName"]],"append_dimensions":{"AutoScalingGroupName":"${aws:AutoScalingGroupName}","InstanceId":"${aws:InstanceId}"},"metrics_collected":{"disk":{"measurement":["used_percent"],"resources":["/"]},"mem":{"measurement":["used_percent"]},"nvidia_gpu":{"measurement":["utilization_gpu","temperature_gpu","memory_used","power_draw"]}}}}},
"nccl":{"FI_PROVIDER":"efa","NCCL_SOCKET_IFNAME":"^lo,docker,veth"},
"project":"gputier",
"reboots":1,
"run":"exec torchrun --nnodes 4 --nproc-per-node 8 /opt/foundation/train.py",
"schema":"gputier/boot/1",
"scratch":{"count":8,"filesystem":"xfs","mount":"/scratch"},
"stack":"prod",
"workload":"foundation"}
EOF

put /usr/local/lib/gputier/fetch.py 0644 unpack <<'EOF'
LRx4!F+o`-Q&}Lr?C1ay5Z{1!5OV+j|NsBr|NsC0{$LpV;S}A^nd9E$x0}Pg+U(#K$8QH(_j}j12fe&`^sO(fsr7B_J-1MOyRj0b0-EbxTNy7Vm1o({AoT>H
0ttzeAZSF&dY)6$)SjU7k5kBu$^i754G&NOqe5gNC#gM8M4Lp!ZAPAu2ATi>0000QVIm?=Ca0=;X*QD~p_4!W(9i$?(Vzx_CZZrfnN<9yOsAzirm5{o=thmH
r=%GG4KyC00MJDwG)#oWH1eK}Pbs6+G<tvl0000007#HP5vk}9X*E5h2{L5#Pe>l10MkGRsA$tN6ULn9`+KQGPVFq9X`p5H>5tWuNAt8}Hzl@|+Bb5{)erJA
vr9pOtqi$gl0R%LX_1IQ$t2+qzDGo=q*17mAd`agAMQd2Or}BbY2Tg_GmV_6eiQsHUKr$C$+c6Z86>lz6Lz26$4=OGxEz>eqR}-FRWyE7Rzjjy8$|Cz&gGw~
$UEi)-l%OfUUxV;oIeqNmg%igM;|N#8xR3h5rV{37_ux-SVa~BkwIdtSRjItL}J1$MhL7@EaYV3y*BUotBe+I@!F4-fDj`>hHe+&v>A;yTV(=E1lo>Lh(`fX
qfKjfL8VOAt-XU!x7VMCPV;)>%UK*exnGG;$61Q-+dZBtNjBl@NdD)>;dWC3DLIU@&w5m<&aJ&)r*1UGm1VQF&EcE7jnqELP8HcuWBRLw+>+1IdB*<Chi7Af
q#U2l+6^_mrmV{#S!%+(k~rQ%zu}Xvh-fY_knp5A?yYNT7uIUKUHUXO0x1itwFNcYBglYYHLXL32%OD|$D$xEDnQHT3go7&3!%ydS+%c5dIE~PFDt{2oxE=8
-7Gk1@7-yh8Zi;3+Hi#mu52XzA2BB=P^trQ1DXBUJoT{Nu+^(!bT``uEU3sGQdtis&2YCw0bUTBwgbZTVtbv3*7JqBuB^xiRn-bR94S#VN~U}EGnZL3u5BGn
irn+}O=r)xRUNk5PFh|}7Y8_w0OITL^*S2-+v>&&%A=E}l``A0zqefju!~+Ut;$u^Ouob4?Kw{D?z8$)xQ33kmTPWX^m!+hOOAYDl9$A4RUoNR1<iuR5FjZ!
xDvLLXD~Q(LuHUw$%a|O-V#Kj8e1-bmFU}2Gy}Jmypw>VMthhL6yDNPn4_#tn!ba2A>1_R>~>bNoQX`VjGBwB-WM)h5ojQCttd+?5xUm7v@}y#Y-Laf7m>EL
gbqlM*@7fce6?>(hb?t8Sfm`z8o2qDVtP`MX$@L>*Np_53%sk?P_hET7$al|&GBGW77RkcD-xz<wVhoobaGd-6_-fAExGGT6vpE+84<o&6NW}{7*-U_PkA7y
uU3yqOH6N|@-mglY~GtntrqN2(zI{>4RvC}Z+{~rpF0#heQi1=QrExcPEEh(9bDSs+p4{o+vt71z16(wR8d2y&uxmUJ1Xbp%s{fd`5s*tI_h!~#-eFIzNxaT
g<ed%?9A_X%K4YNHdy<*X#B~?MWzPzECR<qJQSQ1(S`Zy-}{lvR#$ANMxCltIExzI?p8pEsJyK{T6!IZ=h3O4ruc_4$2Km#X~;JMeG<L!h)Rm_Hb72DTn&Ys
E_sgaRE1oND(>&ZH*y7);6Y?tyxXj>EQaiNVBbmCu}c%NUTJGC%7ypEB+d%3s0(Jogg_BMz`~*dB*Y-N9E~9EQ*|mVALDevQxPhvnMlmjRALGB_T}3KC#>x_
&V#JUMH7~cX=4p-3!u>+%qzL{PaSb`3iKf`fa?&JyJ+#-iYr(j!IbeTwfA;dOh-`JXC_RS;_Iz0KD+}j;oQU<2rs;A2ZF~Z7MX0@P-T(3y~=M%u+8H4Evt#A
QQ%qbizugM@m|<hz86cOSRxe}gJIi&$bk^_6=*=+Ru<kUh_w@ep&5qbHqz{3kQEHHCcWpkS6O>goBY||Y23b^*ns=nUMIuNq^UT)nVGDhx!cFX#{zL$>Tzwt
#$Tk{UcA~|!@9X;QM~nXa?;UP@miyUHJff&7`CfH9jk6W0Zd}&lFp!Ttg=~B&bsK&!DSOe&UJm%?b>0(NcIksWv<)4s=QiDfEBFEw)Tbh=Vau#+;!_vF*);J
RE>3^Lleguarz!N<m_uyeHBKEd`d=2yAo=ut^vPxn{8RTdLhwboIsGHSV9w>_+k?>J385IddrjK;ce25m)ljW_QDq`MXgA-Xb(~|HrXmz?aJc`bjYE1RhMCM
8=d10nYuPzk+En+14Gw*;^?L4DP{4-BRP^9>H`atko&X+mK;QE?VDVOY>Ic!5;IaNrnl2z$u?M<SC=F>@b1Ge14FjFQ}Eoxnm9UiyBp2LOUB;%*Fz4zD%?<D
;y0guSj7<&ao|I4@bNQtU0~V;#`4ACG!E6@WL<mbFD;Ys<>Sb4mmkx>`Vl-u&xWBU)OeKYRp_i*sTRI56YFVT>@SnJovN(xN<m+N#x#M*V=%dnm<85cE%7TN
u{<&r<=ZV+O^v1yVj}Dk>DODcP{wUnTE&?K<zm|;RTd?;8ZnJXAhmSv#{g7i)}q3R$;3e>RERM=`*z)IEZ^f+x3n{}XRm#@a3i&=RhXb$9Oh@?#)+;$y7c`(
cN5PgUrBi`Jv?NjKXB(ZG^`YSCF)y@K0j>zHJq+e3fY5wGbGWQIQJnfbZwyD4Q!~8&`n6pm;G6wj5UN5Rc)dw_iQE*v;FXqIwX8LSWNsHWqFJ%=b0{@JpKKi
?{Btj!=g`w2R6#lw8Fvelo*9#J19a)?$odju-P!7<IEtc_umxYgy;r*g^Isd`N;DH2B#a#y^dyhH8IG<+f(q~E{jV_N)vAq!es_2e4sj-NV+m*aQT;*Ag(OP
a)*8tN?v`#GyfPLrTh#;YJjFjQTgvgfLcQCrJ#ai1*YAm@#6K0h|;_$a9ilD7+-a<DcLB1u#8^e&j&1Fv<ejw6i_v>cLcpRsQ*d!%h~M;EdQ1DZ66~W1Y`1F
C?ZzPQHl>!kIsEQ^JOR_U7um%-qa(C9z93BdK~QJeraD>c&LvRFd&{^pq)1pCwW#ma^$`4g0c^>e9CG(jH>Z`OJ-5VHk>E%5Bd{l*i%F1=EqzR=TSujC_FU(
XYxTLaA!6=OiR^MX9O+}VG?(e^H^4sAx{X}O(rL02_{>dQ65oMc=Hq&+?y!ek|(E%hT+%+j}*x{&S^)6qbg8UwQw1Ze=|<d90=eKM+ED<xRDy6AEk#-n+ziA
%^4V!Wrb9A?{u)ChAGdrdI9%JW_JKA9q9^;YpY37C%>z~;%_V&1{CJ*zX$XxVIhhYCsV2nDVNahX@yifdC}PpALZs$i}mby`34_R@hjKq>ftZ&Y;t&W_x@>G
!Qvu_&iOlE=+2W<gEAlJpI{sT{fEwfN>QxpHx4l-)8VJvpCms+Lk1{`vIZ4H5g?`9A$S!pI(*_$^Nq1}p<xJXv1r<Dv9bLuF!fCvy{fo<YB&LLXR-t~5J2Ky
SYk;CU{j=HWSUYk?`oD-!g_$yU@qm#LY3gpe_Dzoa#a+uI}+zH&&<MI$rLslr2d8wq$o}=akN4{uFkoDUVEyF8yD2h(lDFBc&*Z7bLjt4p-9*S40x}=P-oqc
Lke=vvLYC4kw!>k7uN+ON36SQ#76VBQ*)PbRRhj`Lwshuep7OAY3FuEGT63|W&f0z^~_3?$cyuNluC(pPkzgasMsg&N3bm|*5HID#l`|NEom{<QHnz*l$D7-
F_>)>sAwUG4D<34uIV_B>oXR<E~V08yGjr%CfCMlMPdg)Dh8sZk{K&90hpKs8f0?k3Se^@ivYut%DbSW6Bo;DZJ9OvBr98#K^EQT0$UXZ)=Rxx>B}S|RP7Ea
iKg2c7{{!rmKKnS)_buLVhNks!LGbofaF|e{{}$!IHb+RClMjWBdV(w1I5j%dAl6WzH%WOS;v3fp=+b8H)$vZWv`*6%;=^el*My@VZo+&nE35T?(DX7*wl39
Yli7BInFQ@G{MX>(Jm@SgMGFuImZ}M<*E$=ndlEdizvuBX{bi9%GKcA1j0U=LNZ#HhV;c<nx<|Ngw-(TI~p4^4xCYQR*<R@<1s;SCoIi{Eqi7k1sG)vi&!G6
EP@Dg8k!`_GD8ytdf5S1j^mux#gbh<#bMZReWBaK*R|Ildwn}dv}<zo)~zWVT2e~m86xTq>`ka@nL5(tSTQAtOp1|Orf!Q`5M5DYdLXU{%563ga2=^kYHW4v
FDBY#(I`CCJTWjL`5~orOzkj1k}5I-sA7G!Z$o!gxSH2m>gLq;$w-u{Zk$-b;UJSD%jjRGy0$VS!`U!n8x;gxgXCeLK6+?W;s|@n%;0ep>Pvl$36YBW0UIzu
01|4U*PlFDiJllBlxLAO+j4Ght?H1!lNzO<x3gOiIv_B7riKkp_ILew0=0jJ35^E~yY^RvK3l~USc(Ha4MkETB7YMl*+|bJYSxJb)F46_dS+3NaE6T~5B)S7
hIlzbeNiZ8i48&5<jj`~*1hS#<m!Fn*mVv<B8eM7`4XmKuib;m#ztyGcua0>18f-sGJSm|0>D&yO)Ki9RZ~*=0X)KbkP&-Ap(2PFlj)ZjG8GOODK$}vq%c%7
WSSEtW(EzsUYbMf%?L=65!PbGT987q2r<YTK<N<05)VYSvU_JR5%Co5V&K8B8$r#QmVC<9<Rd{J7bG_`OTWmiLV;k}c^5<#h64};4RFK@4!HWLrl{FBCz0`$
ue)A{CYYQ`Is1&uBWQumq^@1cYa12>2Ulbz=J2OaDA-!PS&W97h-wIkZXqa6sdgSYLh)+jiWaIo1jDEy#FfbLlpK&_E<rLyn>G`Z+O8F*_CO5=T`jE6jxAgU
1wAv5Na!DqzMa={GbCrPo`m=CPDrOFSFoVHYaN4L4hxMm&yRUU;w1ZzV;W}{76vq*EH^k6IET}ITtj8~WhxSi+B_mw%nCH6on<;H8O%#ly<y*iAke9KihU_w
ybzM`H3Y*&LutQw?p>Rvi5=D>ZZu<B0{nkL<tVC;q00F$W*tt)*v2aeEFAPX^drkyOvPGKo5Su9NR^OoGF)1bLm5Kn1eK|J%QpjBuB94Y*eZphn5i!qQL6V|
9KbSX67evxWzrfF`%yE9J<StyozHR{7Z%7cWx>N{21ykvWLl46FuXy6nM(MQ4<k`ECiHwTV<U*9y7)%JV8z%WRVpl5PwIGVl*<}bU^Yc%RV-RIvW<{TR0~05
)OW4%fg%=i^W`13Gwg6Br;e%2oG!sgka)77axqv0XocO=MKn=W0I_c2fK~~Fu@)+kVyq)H`I3ZM9%o%)p8SCWpQA5=6$+p+7z#ozfnw8PsZp*6Za0M4jUhvq
A{1eu-Up%ve{_loT#jl`)T*ZCK{P5%4rUTecMr|!ZJzKB>;zAv==Q*=;!zQ(8X$xyqguHRq8iJb4wgBaL_sBl>7R{M4#e#t*CFW`BL*=bsRdv`M8>$Fb&b2N
yBX*hDhUw^#4r${9E)yyPQQfp!@Lm@iNxM^?vvzY=t>vwl~fBQL<z$nkl_opg(7D}qbn;OoCanTyv;r*wg{o>rUg)`6p@~&T?~g@Pe~wTi7?tIMt*;TbS7ro
4M<oncuW2IDS(R$`n<WN;^h~3Je!x|QPerkXnH||3rdtm5ZM0QLTyo3)-kV?>{0>mfcI8CRu-#vhZ_xpadKuT5SVZqnOm~iZ855dlec+-v@wtD&}az{LsLp&
JoZUV142eH6iA3ydZs9))RZ!UmZ$_hZ89kZxlm9L?L1Vm!%0dM(NUB`iTId*^E@+4H?=EZ2pK3cM?k7Khp)o36IE^;H3LvzC?&vRq>{^|35_FRp{yn3mcz3|
LKH|LCzSAQxAhF-dspWTZq!wMWRUu6+8?KBH%?#M1Y#nn3?alwa|Dyqw3eYZhTp=1V$~f{>90d^HZ@I?vQs@34*<dC^E#n{Wk*j#$AapecI4#wYZ-^0pke5N
vy$<=?m<{OG;%Y_IY>H-Ga~6<2UHOWvpWN`t>wjUgA9ytD_2i$a=U3^12eS=vM3UvpkBLSdc9d;s7C>|a6*v|WP12?zXoxom7oO}(u%4IeRNcVu~S~f-`#T3
CY41gR@s+jOw+#>R4OkUWHW8KiCkC;ryrF21_aRrAa@078pTn?2L=hS81PxzDLo!}2rk8i@{&{QlyGs25MXKfD1yQ=BpA};Ge)vc8e%0cIUwQ6A>vn)<{uo;
_K<FL#}_K=JxV&Q)scr<EZVR#*}7<J!IkFLpK#j6N`|TcTFy(wz=hMG>k{rd)NL=3I|d61X?kM@I+QMsHDDZ4p~z?uYR(lVLsl-+d#S05pm=Zv?vR%hB`qk7
6b3^ELVeD(LVi;a$jQz_7DI&;K*AjO;)RoQS*?_G-NkxPo1FH5`d*2n0Rz1WCs5+kV`kT}1(nEw4KiVg+;FmKWWa7)4)l?x8IcV@opC9#-)>yFb5|_hf-G3E
v9)9%8790O1uS7Gkr-7k-M+Z#1%L^qSc^()V%*yXl|tk<ADT4luPL`Omo?U*V1ei{9z)Ek!_rTNB~i#={Sj{H6xt<F5w(MsVq@Bkc~cgclu|-1J+fBW-zyg-
avfBygU&N2PC?k0Yq(;$feh-47eUgTDA2wtEFFVV8nKEQRU#*pCd~92zYX_FcL$nC_(l{O2w<QMhcZyeJh`a4L_KLfj>sWdF$QVjF$pB15jAh18qzU<Fip^v
X4D<QV&P*dxr~C=+G#cBT*}|%c?Rz7=OKC6b1d3aI<XrGqX;0nL@t1ZwhV)R+tEH>ud>aAmN}c{eKH`fCS_iKO)~Dm32K-<Zob(M{x0N-aG@YUd)d$
EOF

put /etc/systemd/system/gputier-boot.service 0644 <<'EOF'
[Unit]
Description=gputier: prepare this machine and prove it
Wants=network-online.target
After=network-online.target multi-user.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/env python3 /usr/local/lib/gputier/fetch.py
ExecStart=/usr/bin/env python3 /usr/local/bin/gputier-node boot
TimeoutStartSec=infinity
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
EOF

systemctl daemon-reload
systemctl enable --quiet gputier-boot.service
systemctl "${verb}" --no-block gputier-boot.service
