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
  if cmp -s "$1.new" "$1"; then rm "$1.new"; return; fi
  verb=restart # so too in an image of a used machine
  chmod "$2" "$1.new"
  mv -f "$1.new" "$1"
}
unpack() { # bzip2 in base 85, by Python: not every image has bzip2
  python3 -c 'import base64,bz2,sys
sys.stdout.buffer.write(bz2.decompress(base64.b85decode("".join(sys.stdin.read().split()))))'
}

put /etc/gputier/expect.json 0644 <<'EOF'
{"cuda":{"min":"11.0"},
"depth":"quick",
"driver":{"min":"450"},
"gate":"enforce",
"gpu":{"count":8,"model":"A100-80GB","nvlinks":12},
"host":{"memory_gib":1152.0,"vcpus":96},
"machine":{"cloud":"aws","instance_type":"p4de.24xlarge"},
"scratch":{"count":8,"gib":7450.6,"mount":"/scratch"}}
EOF

put /etc/gputier/boot.json 0644 <<'EOF'
{"breaker":{"after":2,"window_seconds":86400},
"bundle":{"delivery":"object","sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","version":"0.1.0"},
"cloud":"aws",
"driver":{"branch":"595","fabric_manager":true,"module":"open","source":"prebaked"},
"gate":{"deadline_seconds":7200,"depth":"quick","group":"gputier-prod-simulation","hook":"gputier-prod-simulation-prove","kind":"lifecycle-hook","mode":"enforce"},
"instance_type":"p4de.24xlarge",
"limits":{"bundle":300},
"metrics":{"agent":"cloudwatch","config":{"agent":{"metrics_collection_interval":60},"metrics":{"aggregation_dimensions":[["AutoScalingGroupName"]],"append_dimensions":{"AutoScalingGroupName":"${aws:AutoScalingGroupName}","InstanceId":"${aws:InstanceId}"},"metrics_collected":{"disk":{"measurement":["used_percent"],"resources":["/"]},"mem":{"measurement":["used_percent"]},"nvidia_gpu":{"measurement":["utilization_gpu","temperature_gpu","memory_used","power_draw"]}}}}},
"project":"gputier",
"reboots":1,
"schema":"gputier/boot/1",
"scratch":{"count":8,"filesystem":"xfs","mount":"/scratch"},
"stack":"prod",
"workload":"simulation"}
EOF

put /usr/local/lib/gputier/fetch.py 0644 unpack <<'EOF'
LRx4!F+o`-Q(1Awj8Om)6yJb&5OV+j|NsBr|NsC0{$Lp#<FT*3?>nybceq!*;k|a#z%OAtOIw-lJQCO4+bGxD=z{yeeZXegs1iXeX4^?xymv`_?a1`kw!x;5
BT1T>G|@Ih!kMJ>(wYp^9;SxU1Jv~ff#nS}8fXL}XqpikZBx|9{Y@veKo}s<00000X@rPMZ6w-idXEZer>Uk-Pyho!00TyV07<BbK#A%wjVGv0>X>?<2dU}<
H2?!Z0BF!es7(zfXn;+m^)S@X(?HNP0001J00fAH1ks>P0%bOZG{SnDL~TZzGyn#GXlbJ|6U(O={rl-ePHilpX`p5F^2g7UN7&Jf+?Lu?Xx+;*R6mWCnpzAM
Xl2U`nzMPpx%!~8NjXFAk<lut6lx?$B;>s#{fI#8l*m2}JM+RuakpI$zJFz_!yRS9O{$y`l1n-fH^1s%V%U2x5a?t^(P)~8Dw;mrRzjgGEXq#`JbAzLS_g-a
{3;C|MPA*Ucl7<jKYvCwswm&+fJ0&cDuOUrilY`qiVFy$kWwftRf_}=QYegAMTo%_ibb3Z&Gpx}Kd)QxS-9=fA6<YDBSMC57vQuRjW%0l0!swi#mZ3#;3^bp
t!{K0RLyI3(i(q1K72WIo1-1qB<S+Wcc?`)RE_Rh?B59`elJL4_`OnzkyMlbiN)}`ds32Bl`pII?7oMoFvGEn-;=j<BH2c0fy<4<FZC`Ar8D@ioN?%&?CiN4
Lg{~;>^9#MQ*`Blg{unkNaDPOf4e7L5YSv<A>l}JU0T-EFO{n4@6n;KB9OYfP*YvvIv^MgYf$0BC~}!C9;kr8u>&!nEE1x)Fo!TJQLY|L^#J63(GR;dcjljV
44#Xt@V0RJD<J~cjn^tFJhXtr>iEfX3~VQubyMf8biY$;tlzS6dBz&!6|+)`G^R!8(Xb8?051ruhRAq6%-5^heeqd1Cw62C7nG@nI8vf!l}z*LGnZL3t}Pt~
#cn#g(v#J2Ne1rcQqUYS0}h428D;Y1Hx=QEC{R{a933>NmfelsopcV77QDAsIZC>tFL2p-qH5JyFYtxh75WS^S7Em{$>B-9>)ncmye$PBQjuqijN*_WDLiZm
TZyxn966!3*tD22-Wg*pz*SOJLsMzcF?(6vM!<M!u}ZlFY|n*(0InvN%&bw&R@=VAghk{w_dTycy(cubER36s96TL5xKS{mb{ioivW`<YS%!;lDjJFb0}eWG
SwQNdfU<ys5ReZ#EieYEge$24#cWff*$IMpB_h%qwDqpc5^P=NUd0O_DN!V4!k6J_2|+-F38YFyjzZ<+#TYD^CTnMuW3zUgD^j`OXhR}7PQsAL(jzNEp_%m(
8WVijdEN8le20OQt_x=BZ7Q@|u}4bLXMltX5`t}<%8YF4BGB5Fa0M{Y$K_6KKHb#xXm@8NSYKbIwf<VFX!DdHf#?@kB24N{+wunqRdyze9>!TlAq(jfLB6_X
#$XBN$HrM1&(hhCYvm@{=Z~;X81<M1^%nsqHT<*=S|gU*spI_z<EI-iqc(jcQ8+^Sn$7BfJQO?E4cU6<mztRM#aXtHa*J}cSH(=t2L1;hF${=KKFO8>azfy2
9PD>;E&K%ncMKE1xpw@U7&67DPYPXb4yBY~Can&3EjEzaX3{vaTT>(=b;Tsk3b3d*Zc4&nDWSn-L=|yH1;FHK2XPjuQ8W+2aRRACB$1>+t4<)I8S(AQZ4T4;
pE2Zm&uN}G;A%nA4qcI5^@|jQ3+m+89Jq7~(1gMRl!Ue2M~ikStzdrsQ^cy*+}groI)=+RGGxE^ooR9N%FFmSu?EB!?Ua+zXKt*lS(~MXG&y^{i;GT!Sd3v?
cNK0&z-#A;BHfR}iOGCq?SxYbAfqsByLPUG2#2suh#am&@GV45s^n~=P~G)AVU{fdkjBMd%=7H(eKo9pZE-co{eGE%{5JjT<>uOouf?p>vo#Q|y`LX-z^vZ;
u4j;yr}0_ex~83B+`6$Nh4ypovua=An~v6LZpRpnjRbbCeg6QqSi<oxK<j#Bl9K0bnfjVU*?jA}^0#kG4!cLlyHuO-cif)lrEmdhW7CF%_v@l_z~sC2u(4Y8
zUdq9V#aG4?)@H!<4e(RbbW~%73>r@BN`^Es^A<u^xbOB)6ouV6ygMh8ofhFgr30Zl^JoBb!f14>s?TMt*)BYtCiLide)C#upEiC^wCLPosKe?O$!)uY1m;y
dEPSVtRrdJ8#4$%*?XT^!WDYbN%-S2tx|@;0frTHAC|#b!-$TK+MFnM(6@besMXNBtK!=$O0r_6{)H%U<;yHiK~Qe8r{2JHNiH|tm==aYNN1a3!QrMBEq9<$
HjX2^8{UYCsCS2H;s=Py^I0IdfxgirtY!@4)dij>OFWWpy!&&4wC4Km9~uVY38w6TFqDruUFzOS<-tjN>WHUXOCMp3yb4~d&lIFB?l{gA76cKj5Mw}MuoJmj
mR0q*OpI}9hai+824XPDFD|=bqJ}ea!uBl)F)bI}C6RJlv#S`?gcq+a?D7RxVR|kqoVbW3mLd$#Pd<3HPDkcTZ?-kjwcU=Ly{bJswaY34mDZ}i4t7oS7YCoX
4QbS>PUd+NHtnoN1L*~=AcTNL;3AB)QPtMn^6h}YO=*86i<|Eb$Sd2=rz6TewJ4G17oe)0zn82KM$)4jVM(*&w5USU_rgUgk?(79L-6aCCTMLphtt#C@;hB!
-s!$edZjxM9W9lsX@!H-P+}E`?4b!ux29MS+v_VLUv&gea&4ptS2$VbF?jZW&W})}0;!xMHI0O1P<;nWq2$iW7=|H8P(}4l1&|bJ>H}*+T4_rMv+Dv24mKY6
er~<`>+$=AGv;7?uhU{9R0T3Jk7If=0SrXUDQH1Kg4cHAkn?;Z!Zo)#oYyL=#u(vzO)i+I>uXX;pi8xUz+%!&V0J;j#_ywxDfAz*@2C5PR-aBbZ63BZ2+!Ay
!4rKISfKl5dq;PGlbjG}m)ty8_(1#6c=eAhs5mPTxgl*r&`}x)8AFq&=@X`*GJ3@~<Hw5DvBgj}N2rcLu}Nq?BDsiQzOk%$JKX86z)=>>(SC;@;6Vfg5gqye
(fx-c2Q9+}guGfxVan?O{R7195bBVrCP7B9xyEsL?2186j1hkDN!^e{TVi1yNdY|@V!H4ENuZ2VjsrS04nuOp+1~jP2Unv1Ak~_Ww^)_!jtr#2DL)ORQM!^t
l~$c8F$!H<RDOR{mzc~hn&0;dX>!W#0C;O=MItoP$P`KK^mnu;5g@1(5z*UjR{4r$fKd}SC$BUoli7Sz3aE7TQPPI@<Kk3{>e%x33?5O=7d~9kA)PY{3`@9b
MS=qqAdo>y+$7HDJs?<IQ;r>wECbSQ9%xWqaT1iWrM&Lf^0|%&t-#RJV-sWyEQTUNxO0W#Sj6)A1f%2?C!!ODL7mf@#ZgE0p~K?DI=<x7f%8i20{M4_fg}h)
#=GH-C=kLA36Y^QB-QskBbvOofF5hXcP^4C#2NK<sH!-nVNPdaUGyD17*BFVO{W=uD+p33PBC$~LO+LRT>vpV)uqDM+YF?{ZH4mdn8@-rf7K{dH-LjYdJrV*
?SN^dbkfp9Fxw?rBN)E8D<plh4a+ecj@hH6_Ynv<ue@PO#{X%6u`R}AO*JhyEJIWL(x*k4V!H^(N1;@zmiltrfn^&+{&af-V{bO#s6{7j1#}xSBc<0F1jLs$
k?oBGaHgiB8elcYaK{?4VxNOlmiNplh9PW(4FIxjd`6^JAanwtYARVFlCv-x;;a#tM=o%t2QjFy3^^>Tx&;o7+PAnwuecQ~mQ@RQ`XC13AQGFWf?vPB=pp8g
!P^osRA7ktuQG7hsAEiZaUrY>9ckFlM;1_UE;Dz7Aa}T=&BZ48kl%>vs>OiuaLoIi-ipax_EbEH+t=&KvzJO+44@@h_lHLjB!@u+I_!OA#KuwlZAdsaOAYK$
Gq9&Dq%=f3fT=Dv0yiO$k`Ux#>?}j&$qbB0TMC-@1K3d{XfB$r5u|9|A#j4BA8nx-B}vI?b!HSqG6YaX5auGpizw!Dp^}P_NJouDgOOThY?W+Iq4KE1Nm`m{
MUJHfI2njqYsv`_hl)^W!vUqKB&8E~xgaD9N3aQ4YLgZ_=X{X~Q3fL)1z{nMlE`9=bs)-5o!L}Xv1^f%Ni%XUL1EPiD%kB4T99F3XNn-UNZCf42*3{1s5M4A
b{LdxGKiQwEO_Q*Mlyz$5ks`e2E<ro2JwmZ*}YCX@66$D7U1aBH%gLb#~MY<9#Rs>yBe75!-HcYJbjb~F|kxe2t8~y2j8xxj-iva#njc>kxq21`K(gn%k+%K
%wRUsqr<B13c@<tV<GjyWVo&UovC3|8Sm9nz+3v(NK1$qCcQ}lHCYVbya3*Quoy5qIeUFNc2no;6j5R*4Df0y$cYo<WV<OD<R_V&<PF&<gb?^}WgemoIo&_$
fz&6u$`i&V4ACK|I`(Euh3j8IH;zt&;X96i;36oIv<}3nm}~7p;Nv4TA-WSAji7CVAZAZjDL}9l9#cy3rBzc>_yIbCcAz5k!l5FF7?a<Z7%~+N>=c@)#L^fl
8L~|YlCuJZ`{ve1%UBp(T#I%cux#r>G!a-mA>IebBeg2gEp#x~10f#)Ue+#b8$j3{?BHGTtK8yb6N6nOtjzOwuBcKhIrq_aVRSH<z!+-9Bxli&Z4}iTCgOPy
f>yoy@;Efa-yqMts*yQk1HGiMUCN6)mP7{r$V<b<zFvshZ9Xo6DU7OR6;!oSRCJTL_qkN}nYitQ^GNX%4dD(YV2?b((FSwSC`oqRr6ulI3iFas3=Uo!X@irC
R{?=eyyLDq2imWHa_%CkCc0-~dzgzRHe}Rx5EFD$XkCekDZ_@nTBs(8i-X!y)ug7-Qp>Fv7>%<OdS`Yhy}q>#uuw(u;}d-Vt4egV(yC1;CBXA6yxAfROBk7_
<y&>+gqMlH6Ae{O$1X#`c5$L4?ztPYs~Xf7v(9c%L?_6~a&K!!gAJ$3(@nG?v^wlFHVN$E37M<P*N}Wf5>3!?GhIxxCmX5XMa`t~EZhdQT?HCm*eZphn5i!q
QL68}Ie=u&CE{UX%cL|V^wBd!JxenKIbG~AFfWkFm<K(%8xky7*j|rfGQ>fWp<8*$4aLJQMi6;WrAI{AraY67*fDkpRZ5E%Q}esqB{Ig9SPhX`RZA9)tfOQT
6#~#%H67Kv7!o084z3Z~V?E9UwDR;P5^r6Cks$A~pl~r*1ZqO=>7tq_s(@IxaKI}B!dQzHNU>HCntN$NEe{i;SXW$ufuAO)5f%#|GZ+d)VFJyj!+~M0XKr|f
8J%GxEQCQv0fG)p3jBg>61W^xp{Z3(%7SQAm>kR`nC2fRUAAq2WQal=o0(9!?NcWx8etHooa*SEWHXo?E@p6ANKmmb+}@&uEgMwDa5Wf^i5S5of=Lj$2QDhm
;wa6<M{bIc)QHw5f;kAqN_z9u_WVagYKAe5GZli{s~0w=!hyedh=6S<NDDOq0?;z_1q5}W6V6uC)Q4<jH%@a^4}kQ+6gz2wR4PRlI>}80Qreo;3@J<uV?tu(
?dj0N6p%O&vR(O4`}J2L7Z~sKcd}_J37Q+6sotQ_Gg+b61`I7KQ5aH>)~bs$H1QFiVD6R!<pJ~BJ==@b`-7_EXtFX#Q6dWm1(J+?{9|f<65(;dGUOVI>pP1B
5y-f-G%h!>Lx5;V#sY~E3g=YC6uOdzP*T+Zhn=QHAh#+C0v$8UQpXJ?C_{o1P$L!VX!{!8&2Hq>-vB_#gJL{_(CZH$cT5qQEi}p*M*E`s1ev)xcu^6FX^_&P
bFHSvM4=W50dcw|>)vuUIb_-mZq!wL<dFC4(jP9;ZcZPv2*gED6iXN;fI)RFT4FLJlYI(@Ni=BYSGsAVkWx5$XC5*Ks0|(e8zKo13cEF)y%)}Lsx*Donseqy
3>wrJG+KB(lq>^mriF7H$T$#Qgd)dAL<&N)7w{iD85k3l8r*H6GGpT8*yboG%`ZZ1iiFhEF<r2|-*;yW*hew8b3&3G3i0gl-@!X`u9*PJGDTGdJycYKu~S}>
XSvnG8EAqVB3zq0ENGrNvcX|_?~$9Y&`Sc~Ryw}v|Aqw-1R!_?tQ;c9>Pwq#h(!S&6Qg2V&FJJnyA~J1Nl%_pyx)ruU}@{33kb-NMo!!u*~&a~#FG6ahdz-H
GTjH>9}N)q6_bmKV-lt!x)5ndiYO@7^bli4!KQ0cFf*{Sc=e~=HnCEns(===lJRgMbm%(7yN<ORi|Z#~!C_4=Oi6Y}K?r9I0hCZSB!EZ|WTjAR&Kj|Tx7}P3
O3(~2Rah67D_oR}B|;iP;iL#&(-6qX#zPiEdWs-n4m<bIvTik+*+(tTE3SmxaoPjddM1nn4s=N!1GS1Q-1eZl+XxWTC>fo{JE)e%19P<VB#m;=h-w7wnO(0N
_H^mquv$GtT(e@mVw4C2eUjy{qIwep(IjV=x|XyAm<5qt#w9LK9<O|AR4^g1@uOCIx~83FPPPjWydg3WOytB_W%i15%(6NRAF40o0;5FO1a4sGK{4(}4wcQO
B^8kupMF*Md8XyjV25Ql!RZ;X*PwSv>30b?AX0g2S>QR(W>`<DnZeX$jMWq}%1EZjO`2*oj$E*sU>*{WcwteXh6w;TM?h$VJidxru#Xkalav)^2s2L!h)FFa
EY12xZHqJw7cj)jn!)V`v$IsvcZmh<w9;$Acb3P{dIOJlBcQ!3JKVa&Bc&nKhKwMB=@7Ys7T7WlAG4Z#pI2#{1uSvL*L{K@t|Kz9Kc1O)V1%_y9$tOYAN*a(
6yZWa#~Lw2
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

if [[ "${verb}" == restart ]]; then # a reload may fail a running unit
  systemctl daemon-reload
  systemctl enable --quiet gputier-boot.service
fi
systemctl "${verb}" --no-block gputier-boot.service
